"""The review page: one document, no request to anywhere but its own server."""

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>routeproof review</title>
<meta name="viewport" content="width=device-width">
<style nonce="@NONCE@">
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif;
  --page: #f6f5f2; --surface: #fff; --ink: #1c1f23; --muted: #5a626c;
  --line: #b9b5ad; --link: #1f4fbf; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --page: #121417; --surface: #1a1d21;
  --ink: #e9e7e3; --muted: #a2aab4; --line: #565d66; --link: #8fb4ff;
  --bad: #ff8f85; } }
body { margin: 0 auto; max-width: 70rem; padding: 1.2rem; color: var(--ink);
  background: var(--page); }
header { display: flex; gap: .4rem 1.2rem; align-items: center; flex-wrap: wrap;
  color: var(--muted); }
header a { margin-left: auto; }
a { color: var(--link); }
h1 { font-size: 1rem; margin: 0; color: var(--ink); }
progress { accent-color: var(--link); width: 8rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font: inherit; margin: 0;
  max-height: 50vh; overflow: auto; }
section { background: var(--surface); border-radius: 10px; padding: .8rem 1rem; }
section h2 { font-size: .8rem; margin: 0 0 .3rem; color: var(--muted); }
details { margin: .6rem 0 0; color: var(--muted); }
summary { cursor: pointer; }
#answers { display: grid; grid-template-columns: 1fr 1fr; gap: 12px; margin: 1rem 0; }
#answers.single { grid-template-columns: 1fr; }
#choices, nav { display: flex; flex-wrap: wrap; gap: .5rem; }
button { font: inherit; color: var(--ink); background: var(--surface); cursor: pointer;
  border: 1px solid var(--line); border-radius: 8px; padding: .45rem .9rem; }
button:hover { border-color: var(--link); }
button[aria-pressed=true] { outline: 3px solid var(--link); }
kbd { font-size: .8em; color: var(--muted); }
#note { width: 100%; box-sizing: border-box; font: inherit; margin-top: .8rem;
  color: var(--ink); background: var(--surface); border: 1px solid var(--line);
  border-radius: 8px; padding: .4rem .7rem; }
#note::placeholder { color: var(--muted); opacity: 1; }
#problem { color: var(--bad); min-height: 1.5em; margin: .4rem 0; }
@media (max-width: 640px) { #answers { grid-template-columns: 1fr; }
  #choices button { flex: 1 1 40%; } }
</style></head><body>
<header><h1>routeproof review</h1><span id="where" role="status"></span>
<progress id="bar" aria-label="answered"></progress>
<a id="export" href="#">export labels</a></header>
<main><p id="ask"></p>
<section><h2>request</h2><pre id="prompt" tabindex="0"></pre></section>
<details id="known"><summary>reference</summary><pre id="reference"></pre></details>
<div id="answers"><section><h2 id="leftname">left</h2><pre id="left" tabindex="0"></pre>
</section><section id="rightbox"><h2>right</h2><pre id="right" tabindex="0"></pre>
</section></div>
<div id="choices" role="group" aria-label="your answer"></div>
<input id="note" aria-label="note" placeholder="note (optional), Enter to leave it"
  maxlength="2000">
<p id="problem" role="alert"></p>
<nav aria-label="other answers"><button id="back">back <kbd>u</kbd></button>
<button id="forward">forward <kbd>j</kbd></button>
<button id="write">note <kbd>e</kbd></button></nav></main>
<script nonce="@NONCE@">
"use strict";
const token = location.pathname.split("/")[1], base = "/" + token + "/api/";
const byId = (name) => document.getElementById(name);
const ways = { preference: [["left", "1", "left is better", "ArrowLeft"],
    ["tie", "2", "neither", "ArrowDown"],
    ["right", "3", "right is better", "ArrowRight"],
    ["skip", "s", "cannot say", "0"]],
  correct: [["right", "y", "right", "1"], ["wrong", "n", "wrong", "2"],
    ["skip", "s", "cannot say", "0"]] };
let items = [], at = 0, question = "preference", notes = {};
const show = () => {
  const item = items[at], done = items.filter((one) => one.answer !== null).length;
  byId("where").textContent = `${at + 1} of ${items.length}, ${done} answered`;
  byId("bar").max = items.length; byId("bar").value = done;
  byId("prompt").textContent = item.prompt;
  byId("left").textContent = item.left;
  byId("known").hidden = item.reference === null;
  byId("reference").textContent = item.reference || "";
  const single = item.right === null;
  byId("rightbox").hidden = single;
  byId("answers").className = single ? "single" : "";
  byId("leftname").textContent = single ? "answer" : "left";
  byId("right").textContent = item.right || "";
  byId("note").value = notes[item.id] || "";
  const group = byId("choices"); group.replaceChildren();
  for (const [answer, key, words] of ways[question]) {
    const button = document.createElement("button");
    const hint = document.createElement("kbd");
    button.textContent = words + " "; hint.textContent = key; button.append(hint);
    button.setAttribute("aria-pressed", String(item.answer === answer));
    button.onclick = () => say(answer); group.append(button, " ");
  }
};
const move = (by) => { at = Math.min(items.length - 1, Math.max(0, at + by)); show(); };
const say = async (answer) => {
  const item = items[at];
  const reply = await fetch(base + "labels", { method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ id: item.id, answer, note: notes[item.id] || "" }) });
  if (!reply.ok) { byId("problem").textContent = await reply.text(); return; }
  byId("problem").textContent = ""; item.answer = answer;
  if (at < items.length - 1) move(1); else show();
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (document.activeElement === byId("note")) {
    if (event.key === "Enter" || event.key === "Escape") byId("note").blur();
    return;
  }
  const key = event.key;
  const way = ways[question].find((one) => one[1] === key || one[3] === key);
  if (way) { event.preventDefault(); say(way[0]); }
  else if (key === "u") move(-1);
  else if (key === "j") move(1);
  else if (key === "e") { event.preventDefault(); byId("note").focus(); }
});
byId("back").onclick = () => move(-1);
byId("forward").onclick = () => move(1);
byId("write").onclick = () => byId("note").focus();
byId("note").addEventListener("input", (event) => {
  notes[items[at].id] = event.target.value; });
fetch(base + "items").then((reply) => reply.json()).then((told) => {
  items = told.items; question = told.question;
  byId("ask").textContent = question === "preference"
    ? "Which answer serves the request better? Which route gave which is hidden."
    : "Is this answer right? Which route gave it is hidden.";
  byId("export").href = base + "export";
  const open = items.findIndex((one) => one.answer === null);
  at = open < 0 ? 0 : open; show();
});
</script></body></html>
"""
