"""An engine that really draws tokens and keeps every request field, with faults.

The model is made up: the next word's distribution depends on the prompt, the place and
the word before. It exists to try what an engine does with its parameters.
"""

import json
from functools import cache
from hashlib import blake2b

import numpy as np
from page_server import Page

WORDS = (
    "river harbour lantern meadow copper winter thunder garden silver morning "
    "shadow marble anchor forest candle bridge"
).split()
END = len(WORDS)
GREEDY_SIZE = 16


@cache
def _distribution(prompt, position, last):
    mark = f"{prompt}/{position}/{last}".encode()
    rng = np.random.default_rng(int.from_bytes(blake2b(mark, digest_size=6).digest()))
    p = rng.dirichlet(np.full(END + 1, 0.4))
    # The end is unlikely at first, and never the likeliest.
    p[END] = 0.02
    p /= p.sum()
    p.flags.writeable = False
    return p


def _filtered(p, body, broken):
    heat = body.get("temperature", 1.0)
    if heat == 0:
        return np.eye(p.size)[int(p.argmax())]
    p = p ** (1 / heat)
    order = np.argsort(-p)
    if "top_k" in body and "top_k" not in broken:
        p[order[body["top_k"] :]] = 0.0
    if "top_p" in body and "top_p" not in broken:
        ahead = np.cumsum(p[order] / p.sum()) - p[order] / p.sum()
        p[order[ahead >= body["top_p"]]] = 0.0
    if "min_p" in body and "min_p" not in broken:
        p[p < body["min_p"] * p.max()] = 0.0
    return p / p.sum()


def _biased(p, body, said, broken):
    logits = np.log(p)
    if "logit_bias" not in broken:
        for token, bias in body.get("logit_bias", {}).items():
            logits[int(token)] += bias
    counts = np.bincount(said, minlength=p.size)
    if "frequency_penalty" not in broken:
        logits -= body.get("frequency_penalty", 0.0) * counts
    if "presence_penalty" not in broken:
        logits -= body.get("presence_penalty", 0.0) * (counts > 0)
    if "repetition_penalty" not in broken:
        logits *= np.where(counts > 0, body.get("repetition_penalty", 1.0) ** 2, 1.0)
    found = np.exp(logits - logits.max())
    return found / found.sum()


class Toy:
    """A server's pages; ``broken`` names what it gets wrong.

    Request fields by their names, and ``stream`` (drops a word of streams),
    ``cache_warm`` (a prompt seen before is answered otherwise), ``together``,
    ``siblings`` (choices share their random numbers), ``zero_logprobs``,
    ``loud_logprobs`` (more than 1 in sum), ``shifted_logprobs``.
    """

    def __init__(self, *broken):
        self.broken = frozenset(broken)
        self.seen = {}
        self.fresh = 0
        self.requests = 0

    def pages(self):
        models = {"data": [{"id": "m", "owned_by": "vllm", "root": "org/M"}]}
        return {
            "/v1/models": Page(json.dumps(models)),
            "/v1/chat/completions": self.chat,
            "/tokenize": self.tokenize,
        }

    def tokenize(self, body):
        text = body.get("prompt", "").strip()
        ids = [WORDS.index(text)] if text in WORDS else [0, 1]
        return Page(json.dumps({"tokens": ids}))

    def chat(self, body):
        self.requests += 1
        prompt = json.dumps(body["messages"])
        times = self.seen[prompt] = self.seen.get(prompt, 0) + 1
        mark = prompt
        if "cache_warm" in self.broken and times > 1:
            mark += "!"
        choices = [self._answer(body, mark, i) for i in range(body.get("n", 1))]
        if body.get("stream"):
            return Page(self._stream(choices[0]))
        tokens = sum(len(each[1]) for each in choices)
        reply = {
            "choices": [self._choice(i, *each) for i, each in enumerate(choices)],
            "usage": {"completion_tokens": tokens},
        }
        return Page(json.dumps(reply))

    def _seed(self, body, choice):
        if "siblings" not in self.broken:
            self.fresh += 1
        elif choice == 0:
            self.fresh += 1
        if "seed" in body and "seed" not in self.broken:
            return [body["seed"], 0 if "siblings" in self.broken else choice]
        if "seed_differs" in self.broken and "seed" in body:
            return [1]
        return [99, self.fresh]

    def _answer(self, body, prompt, choice):
        rng = np.random.default_rng(self._seed(body, choice))
        said, rows, finish = [], [], "length"
        most = body.get("max_tokens", GREEDY_SIZE)
        if "max_tokens" in self.broken:
            most += 5
        while len(said) < most:
            last = said[-1] if said else -1
            raw = _biased(
                _distribution(prompt, len(said), last), body, said, self.broken
            )
            if (
                len(said) < body.get("min_tokens", 0)
                and "min_tokens" not in self.broken
            ):
                raw[END] = 0.0
                raw /= raw.sum()
            if "min_tokens" in body and "min_tokens" in self.broken and len(said) == 2:
                finish = "stop"
                break
            token = int(rng.choice(END + 1, p=_filtered(raw.copy(), body, self.broken)))
            if token == END:
                finish = "stop"
                break
            said.append(token)
            rows.append(self._told(raw, token))
            stop = body.get("stop") or ()
            if "stop" not in self.broken and any(WORDS[token] in s for s in stop):
                said.pop()
                rows.pop()
                finish = "stop"
                break
        return rows if body.get("logprobs") else [], said, finish

    def _told(self, p, token):
        order = np.argsort(-p)[:5]
        shift = -0.8 if "shifted_logprobs" in self.broken else 0.0

        def value(t):
            if "zero_logprobs" in self.broken:
                return 0.0
            if "loud_logprobs" in self.broken:
                return -0.2
            return float(np.log(max(p[t], 1e-30))) + shift

        names = (*WORDS, "</s>")
        top = [{"token": f" {names[t]}", "logprob": value(t)} for t in order]
        return {
            "token": f" {names[token]}",
            "logprob": value(token),
            "top_logprobs": top,
        }

    def _choice(self, index, rows, said, finish):
        text = " ".join(WORDS[t] for t in said)
        found = {
            "index": index,
            "message": {"role": "assistant", "content": text},
            "finish_reason": finish,
        }
        return {**found, "logprobs": {"content": rows}} if rows else found

    def _stream(self, answer):
        _, said, finish = answer
        words = [WORDS[t] for t in said]
        if "stream" in self.broken:
            words = words[:1] + words[2:]
        chunks = [
            {"choices": [{"index": 0, "delta": {"content": w if i == 0 else f" {w}"}}]}
            for i, w in enumerate(words)
        ]
        end = {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
        lines = [f"data: {json.dumps(each)}\n\n" for each in (*chunks, end)]
        return "".join(lines) + "data: [DONE]\n\n"
