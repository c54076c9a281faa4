"""The page in a real browser: offline, by keyboard, for screen readers."""

import importlib.util
import shutil

import msgspec
import pytest
from report_cases import a_judgement

from routeproof.reports import html, past_page
from routeproof.reports.past import past_run

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
LACKING = [
    name
    for name, there in (
        ("a chromium on PATH", CHROMIUM is not None),
        ("playwright", importlib.util.find_spec("playwright") is not None),
        ("axe", importlib.util.find_spec("axe_playwright_python") is not None),
    )
    if not there
]

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(bool(LACKING), reason=f"needs {', '.join(LACKING)}"),
]

FLAGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(html.render(a_judgement(flip_count=60)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=CHROMIUM, args=FLAGS, chromium_sandbox=False
        )
        yield started
        started.close()


class Opened:
    """A page that was opened, and all it complained about or asked for."""

    def __init__(self, context, path):
        self.complaints = []
        self.requests = []
        self.page = context.new_page()
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())

    def _heard(self, message):
        if message.type in {"error", "warning"}:
            self.complaints.append(message.text)

    def wait_for_charts(self):
        from playwright.sync_api import expect

        waiting = self.page.locator("[data-chart]:not(:has(svg))")
        expect(waiting).to_have_count(0, timeout=60_000)

    def focused(self):
        return self.page.evaluate("document.activeElement.textContent.trim()")


@pytest.fixture
def opened(browser, report, request):
    options = {"viewport": {"width": 1280, "height": 900}, "offline": True}
    context = browser.new_context(**options, **getattr(request, "param", {}))
    yield Opened(context, report)
    context.close()


def test_it_opens_offline_draws_every_chart_and_complains_of_nothing(opened):
    opened.wait_for_charts()
    assert opened.complaints == []
    assert [url for url in opened.requests if not url.startswith("file:")] == []
    charts = opened.page.locator("[data-chart]").count()
    assert opened.page.locator("[data-chart] svg").count() == charts >= 15


def test_the_history_opens_offline_and_axe_finds_nothing_serious(browser, tmp_path):
    from axe_playwright_python.sync_playwright import Axe

    runs = [
        msgspec.structs.replace(
            past_run(a_judgement(), "f"),
            run_id=f"n{day}",
            started_at=f"2026-11-{day}T08:00:00Z",
        )
        for day in (10, 11, 12)
    ]
    path = tmp_path / "history.html"
    path.write_text(past_page.render(runs, title="History"), encoding="utf-8")
    context = browser.new_context(offline=True)
    opened = Opened(context, path)
    opened.wait_for_charts()
    found = Axe().run(opened.page).response["violations"]
    context.close()
    assert [v["id"] for v in found if v["impact"] in {"serious", "critical"}] == []
    assert opened.complaints == []


def test_an_answer_with_a_script_runs_nothing(opened):
    opened.wait_for_charts()
    assert opened.page.evaluate("window.hostile") is None
    assert opened.page.locator("main img").count() == 0


def test_axe_finds_nothing_serious_in_light_or_dark(opened):
    from axe_playwright_python.sync_playwright import Axe

    opened.wait_for_charts()
    opened.page.evaluate(
        "document.querySelectorAll('.gate, .flip').forEach(d => { d.open = true })"
    )
    drawings_apart = {"exclude": [["[data-chart] svg"]]}
    for scheme in ("light", "dark"):
        opened.page.emulate_media(color_scheme=scheme)
        found = Axe().run(opened.page, context=drawings_apart).response["violations"]
        grave = [
            (scheme, each["id"], each["nodes"][0]["html"][:200])
            for each in found
            if each["impact"] in {"serious", "critical"}
        ]
        assert grave == []


def test_the_keyboard_goes_from_the_verdict_through_gates_to_flips(opened):
    page = opened.page
    page.keyboard.press("Tab")
    assert opened.focused() == "Skip to the verdict"
    page.locator(".strip a").nth(0).focus()
    page.keyboard.press("Enter")
    assert page.locator("#gate-inventory").get_attribute("open") is not None
    assert "Inventory" in opened.focused()
    flips = page.locator(".flip summary")
    flips.nth(0).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.locator(".flip").nth(1).get_attribute("open") is not None
    page.keyboard.press("ArrowUp")
    assert "structured-017" in opened.focused()


def test_flips_are_shown_in_pages_and_filtered(opened):
    page = opened.page
    visible = page.locator(".flip:visible")
    assert visible.count() == 25
    page.get_by_role("button", name="Show more").click()
    assert visible.count() == 50
    page.get_by_label("direction").select_option("gain")
    assert page.locator(".filters output").inner_text() == "20 of 20"
    page.get_by_role("searchbox").fill("arithmetic-003")
    assert visible.count() == 1


def test_paper_shows_every_gate(opened):
    page = opened.page
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".gate:not([open])").count() == 0
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator(".gate:not([open])").count() > 0


@pytest.mark.parametrize(
    "opened", [{"java_script_enabled": False}], indirect=True, ids=["no scripts"]
)
def test_without_scripts_every_number_and_flip_is_still_there(opened):
    page = opened.page
    assert page.locator(".flip").count() == 60
    assert page.locator(".filters").is_hidden()
    assert page.locator(".numbers table").count() >= 15


def test_the_page_is_never_wider_than_the_window(opened):
    opened.wait_for_charts()
    for width in (360, 768, 1920):
        opened.page.set_viewport_size({"width": width, "height": 800})
        wide = opened.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width
