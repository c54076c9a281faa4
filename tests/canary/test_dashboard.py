"""The dashboard in a real browser: live, quiet, on a phone, and its button works."""

import asyncio
import importlib.util
import json
import shutil

import pytest
from canary_cases import a_gateway, ask
from fakes.openai_server import json_reply

from routeproof.canary.admin import Admin

CHROMIUM = shutil.which("chromium")
LACKS_BROWSER = CHROMIUM is None or importlib.util.find_spec("playwright") is None
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(LACKS_BROWSER, reason="needs chromium and playwright"),
]

PHONE = {"width": 360, "height": 740}
DESK = {"width": 1200, "height": 900}


def said(text):
    choice = {"message": {"content": text}, "finish_reason": "stop"}
    return json_reply({"id": "c", "choices": [choice]})


async def traffic(stand, n):
    for i in range(n):
        body = {"messages": [], "user": f"u{i}"}
        await ask(stand.url, json.dumps(body).encode())


async def shown(folder, *, key=None, dark=False, size=DESK, act=None):
    """Open the dashboard of a busy canary; returns (page's findings, gateway)."""
    from playwright.async_api import async_playwright

    texts = said("<img src=x onerror=alert(1)> hello"), said("<script>bad()</script>")
    more = "  steps: [0.5]\n"
    async with a_gateway(folder, trusted=texts[0], fast=texts[1], more=more) as stand:
        gateway = stand.gateway
        gateway.command("start", actor="test")
        await traffic(stand, 30)
        admin = Admin(gateway, key, live_every_s=0.1)
        async with (
            serving_admin(gateway, admin) as url,
            async_playwright() as play,
        ):
            browser = await play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            scheme = "dark" if dark else "light"
            page = await browser.new_page(viewport=size, color_scheme=scheme)
            said_aloud, asked = [], []
            page.on("console", lambda m: said_aloud.append(m.text))
            page.on("pageerror", lambda e: said_aloud.append(str(e)))
            page.on("request", lambda r: asked.append(r.url))
            await page.goto(url)
            found = await act(page)
            await page.screenshot(path=folder / "page.png", full_page=True)
            await browser.close()
            return found, said_aloud, [a for a in asked if not a.startswith(url)], stand


class serving_admin:
    """The admin listener alone, on a free port."""

    def __init__(self, gateway, admin):
        from routeproof.canary.server import server

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


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_it_is_live_and_quiet_and_fits_the_screen(tmp_path, dark, size):
    async def look(page):
        await page.wait_for_selector("#signals tr")
        await page.wait_for_selector("#audit tr")
        await page.click("summary:has-text('Sampled answers')")
        await page.wait_for_selector("#canary .answer")
        return await page.evaluate(
            "({phase: document.querySelector('#phase').textContent,"
            "  link: document.querySelector('#link').textContent,"
            "  wide: document.documentElement.scrollWidth,"
            "  images: document.images.length,"
            "  answer: document.querySelector('#canary .answer').textContent})"
        )

    found, aloud, elsewhere, _ = run(shown(tmp_path, dark=dark, size=size, act=look))
    assert aloud == [] and elsewhere == []
    assert (found["phase"], found["link"]) == ("stepping", "live")
    assert found["wide"] <= size["width"]
    assert found["images"] == 0 and "<script>bad()" in found["answer"]


def test_its_button_takes_the_candidate_back(tmp_path):
    async def act(page):
        await page.wait_for_selector("#signals tr")
        await page.fill("#why", "off-topic answers")
        await page.click("#rollback")
        await page.wait_for_selector("#phase.rolled_back, #phase.rolling_back")
        return await page.inner_text("#reason")

    _, aloud, _, stand = run(shown(tmp_path, act=act))
    assert aloud == []
    entries = stand.gateway.store.since(0)
    assert [e.reason for e in entries if e.actor == "dashboard"] == [
        "off-topic answers"
    ]
    assert stand.gateway.lease.weight_ppm() == 0


def test_without_the_key_it_shows_nothing_and_with_it_everything(tmp_path):
    async def act(page):
        await page.wait_for_selector("#login:not([hidden])")
        before = await page.locator("#signals tr").count()
        await page.fill("#key", "right")
        await page.click("#login button")
        await page.wait_for_selector("#signals tr")
        return before

    before, aloud, _, _ = run(shown(tmp_path, key="right", act=act))
    assert before == 0
    assert all("401" in line for line in aloud)
