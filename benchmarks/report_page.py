"""The weight of a report page and how soon a browser shows it.

    python benchmarks/report_page.py                    # a generated run of 10^5
    python benchmarks/report_page.py --run runs/today   # a run of yours

Needs chromium on the path and playwright. Printed are the size, the seconds to make the
page, and from the start of the navigation: when the text stands (DOM content), when
the page is loaded, and when the last chart is drawn. The middle of five visits.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from judge import generate

from routeproof.jobs.judge import judge
from routeproof.jobs.report import report

SIZE = 100_000
VISITS = 5
LAST_CHART = """async () => {
  const all = [...document.querySelectorAll('[data-chart]')].filter(p => p.offsetWidth);
  while (all.some(place => !place.querySelector('svg')))
    await new Promise(done => requestAnimationFrame(done));
  return performance.now();
}"""


def main() -> None:
    """Make the page, open it, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        run = given.run or Path(scratch) / "run"
        if given.run is None:
            generate(run, SIZE)
            judge(run)
        began = time.perf_counter()
        (page,) = report(run, formats=("html",))
        made_s = time.perf_counter() - began
        print(f"page     {page.stat().st_size / 1e6:.2f} MB, made in {made_s:.1f} s")
        for name, seconds in opened(page).items():
            print(f"{name:<8} {seconds:.2f} s")


def opened(page: Path) -> dict[str, float]:
    """Seconds from the start of the navigation, each the middle of all visits."""
    from playwright.sync_api import sync_playwright

    seen: dict[str, list[float]] = {"text": [], "loaded": [], "charts": []}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), chromium_sandbox=False
        )
        for _ in range(VISITS):
            tab = browser.new_page()
            tab.goto(page.resolve().as_uri())
            charts_ms = tab.evaluate(LAST_CHART)
            timing = tab.evaluate(
                "performance.getEntriesByType('navigation')[0].toJSON()"
            )
            seen["text"].append(timing["domContentLoadedEventEnd"] / 1000)
            seen["loaded"].append(timing["loadEventEnd"] / 1000)
            seen["charts"].append(charts_ms / 1000)
            tab.close()
        browser.close()
    return {name: statistics.median(values) for name, values in seen.items()}


if __name__ == "__main__":
    main()
