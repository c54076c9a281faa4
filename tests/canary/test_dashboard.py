"""The dashboard in a real browser: live, quiet, on a phone, and its button works."""

import asyncio
import contextlib
import importlib.util
import json
import shutil

import pytest
from canary_busy import a_busy_canary, traffic
from canary_cases import a_gateway, ask
from fakes.openai_server import json_reply

from routeproof.canary.admin.app import Admin

CHROMIUM = shutil.which("chromium")
LACKS_BROWSER = CHROMIUM is None or any(
    importlib.util.find_spec(name) is None
    for name in ("playwright", "axe_playwright_python")
)
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(LACKS_BROWSER, reason="needs chromium, playwright and axe"),
]

PHONE = {"width": 360, "height": 740}
DESK = {"width": 1200, "height": 900}


@contextlib.asynccontextmanager
async def opened(gateway, *, key=None, dark=False, size=DESK):
    """The dashboard in a browser: (page, what it said aloud, what it asked for)."""
    from playwright.async_api import async_playwright

    admin = Admin(gateway, key, live_every_s=0.1)
    async with serving_admin(gateway, admin) as url, async_playwright() as play:
        browser = await play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        scheme = "dark" if dark else "light"
        page = await browser.new_page(viewport=size, color_scheme=scheme)
        aloud, elsewhere = [], []
        page.on("console", lambda m: aloud.append(m.text))
        page.on("pageerror", lambda e: aloud.append(str(e)))
        page.on(
            "request",
            lambda r: None if r.url.startswith(url) else elsewhere.append(r.url),
        )
        await page.goto(url)
        yield page, aloud, elsewhere
        await browser.close()


@contextlib.asynccontextmanager
async def busy(folder, n=120):
    """A canary that has served for a while, its helpers done with what they had."""
    async with a_busy_canary(folder) as stand:
        stand.gateway.side.curves.every_s = 0.1
        stand.gateway.command("start", actor="Ada", reason="a new draft")
        stand.gateway.command("promote", actor="Ada")
        stand.gateway.command("promote", actor="Ada")
        await traffic(stand, 0, n)
        yield stand


class serving_admin:
    """The admin listener alone, on a free port."""

    def __init__(self, gateway, admin):
        from routeproof.canary.admin.server import server

        self.server = server(admin, "127.0.0.1:0", grace_s=1)

    async def __aenter__(self):
        self.task = asyncio.create_task(self.server.serve())
        while not self.server.started:
            await asyncio.sleep(0)
        port = self.server.servers[0].sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}/"

    async def __aexit__(self, *_):
        self.server.should_exit = True
        await self.task


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 90))


async def serious(page):
    """What axe finds that keeps people out."""
    from axe_playwright_python.async_playwright import Axe

    found = (await Axe().run(page)).response["violations"]
    return [
        (each["id"], each["nodes"][0]["html"][:160])
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


LOOKS = [(False, DESK), (True, DESK), (False, PHONE), (True, PHONE)]


def test_it_is_live_quiet_readable_and_fits_every_screen(tmp_path):
    async def look(stand, dark, size):
        async with opened(stand.gateway, dark=dark, size=size) as (page, aloud, asked):
            await page.wait_for_selector("#signals tr")
            await page.wait_for_selector("#audit tr")
            for name in ("Sampled answers", "Sampling, shadow"):
                await page.click(f"summary:has-text('{name}')")
            await page.wait_for_selector("#answers .answer")
            wide = await page.evaluate("document.documentElement.scrollWidth")
            name = f"{'dark' if dark else 'light'}-{size['width']}.png"
            await page.screenshot(path=tmp_path / name, full_page=True)
            return await serious(page), aloud, asked, wide - size["width"]

    async def go():
        async with busy(tmp_path) as stand:
            return [await look(stand, *each) for each in LOOKS]

    assert run(go()) == [([], [], [], 0)] * len(LOOKS)


SHOWN = """({
  phase: document.querySelector('#phase').textContent,
  link: document.querySelector('#link').textContent,
  weight: document.querySelector('#weight').textContent,
  now: document.querySelector('#steps [aria-current]').textContent,
  groups: [...document.querySelectorAll('tr.group')].map(e => e.textContent),
  curves: document.querySelectorAll('#signals svg.curve').length,
  drawn: [...document.querySelectorAll('svg.share path')].map(
    e => e.getAttribute('d').length),
  slices: [...document.querySelectorAll('#slices tr')].map(
    e => [...e.children].map(c => c.textContent)),
  timings: [...document.querySelectorAll('#latency tr')].map(
    e => [...e.children].map(c => c.textContent)),
  audit: [...document.querySelectorAll('#audit tr')].map(
    e => e.children[2].textContent),
})"""


def test_it_shows_weight_evidence_drafts_by_slice_latency_and_audit(tmp_path):
    async def go():
        async with busy(tmp_path, n=240) as stand:
            async with opened(stand.gateway) as (page, _, _):
                await page.wait_for_selector("#audit tr")
                await page.wait_for_function(
                    "document.querySelectorAll('svg.share path')[3]"
                    "?.getAttribute('d').length > 20"
                )
                return await page.evaluate(SHOWN), stand.gateway

    found, gateway = run(go())
    assert (found["phase"], found["link"]) == ("stepping", "live")
    assert found["weight"].startswith("50.0") and found["now"].startswith("50.0")
    assert [g.split(":")[0] for g in found["groups"]] == [
        "live answers",
        "shadow pairs",
    ]
    assert found["curves"] == len(gateway.config.policies)
    assert {(row[1]) for row in found["slices"]} == {"control", "canary"}
    assert all(row[3].startswith("–") for row in found["slices"] if row[1] == "control")
    assert any("%" in row[3] for row in found["slices"] if row[1] == "canary")
    assert {row[0] for row in found["timings"]} == {"end to end", "first token", ""}
    assert found["audit"][-4:] == ["promote", "promote", "start", "create"]


def test_a_pair_is_shown_side_by_side_and_what_models_write_stays_text(tmp_path):
    def says(text):
        choice = {"message": {"content": text}, "finish_reason": "stop"}
        return json_reply({"id": "c", "choices": [choice]})

    more = (
        "  steps: [0.5]\n"
        "  privacy: {replay: true, replays_per_minute: 6000, keep_prompts: true}\n"
    )
    texts = says("<img src=x onerror=alert(1)> one"), says("<script>bad()</script>")

    async def go():
        async with a_gateway(
            tmp_path, trusted=texts[0], fast=texts[1], more=more
        ) as stand:
            stand.gateway.command("start", actor="test")
            message = {"role": "user", "content": "<b>jane.doe@example.org</b>?"}
            for i in range(12):
                body = {"messages": [message], "user": f"u{i}"}
                await ask(stand.url, json.dumps(body).encode())
            while not stand.gateway.taster.pairs["compared"]:
                await asyncio.sleep(0)
            async with opened(stand.gateway) as (page, aloud, _):
                await page.wait_for_selector("#signals tr")
                await page.click("#samples > summary")
                await page.select_option("#filter", "pairs=1")
                await page.wait_for_selector("#answers .pair")
                return aloud, await page.evaluate(
                    "({images: document.images.length,"
                    " asked: document.querySelector('.pair').textContent,"
                    " said: [...document.querySelectorAll('#answers .answer')]"
                    "   .slice(0, 2).map(e => e.textContent)})"
                )

    aloud, found = run(go())
    assert aloud == [] and found["images"] == 0
    assert "<b>[email]</b>?" in found["asked"]
    assert "control" in found["said"][0] and "onerror" in found["said"][0]
    assert "canary" in found["said"][1] and "<script>bad()" in found["said"][1]


def test_its_button_takes_the_candidate_back(tmp_path):
    async def go():
        async with busy(tmp_path, n=10) as stand:
            async with opened(stand.gateway) as (page, aloud, _):
                await page.wait_for_selector("#signals tr")
                await page.fill("#why", "off-topic answers")
                await page.click("#rollback")
                await page.wait_for_selector("#phase.rolled_back")
                offered = await page.locator(".actions button:enabled:visible").all()
                left = [await each.inner_text() for each in offered]
                return aloud, left, stand.gateway

    aloud, left, gateway = run(go())
    assert aloud == []
    assert "Try again" in left and "Roll back now" not in left and "Pause" not in left
    entries = gateway.store.since(0)
    assert [e.reason for e in entries if e.actor == "dashboard"] == [
        "off-topic answers"
    ]
    assert gateway.lease.weight_ppm() == 0


def test_widening_without_evidence_is_asked_about_first(tmp_path):
    async def go():
        async with busy(tmp_path, n=4) as stand:
            stand.gateway.command("pause", actor="Ada")
            before = stand.gateway.store.read("fast").step
            async with opened(stand.gateway) as (page, _, _):
                await page.wait_for_selector("#signals tr")
                button = page.locator("[data-command=promote]")
                await button.click()
                asked = await button.inner_text()
                after_one = stand.gateway.store.read("fast").step
                await button.click()
                await page.wait_for_selector("#phase.promoted, #phase.stepping")
                return before, asked, after_one, stand.gateway.store.read("fast").step

    before, asked, after_one, after_two = run(go())
    assert asked == "Widen without evidence?"
    assert (after_one, after_two) == (before, before + 1)


def test_without_the_key_it_shows_nothing_and_with_it_everything(tmp_path):
    async def go():
        async with busy(tmp_path, n=4) as stand:
            async with opened(stand.gateway, key="right") as (page, aloud, _):
                await page.wait_for_selector("#login:not([hidden])")
                before = await page.locator("#signals tr").count()
                await page.fill("#key", "right")
                await page.click("#login button")
                await page.wait_for_selector("#signals tr")
                return before, aloud

    before, aloud = run(go())
    assert before == 0
    assert all("401" in line for line in aloud)
