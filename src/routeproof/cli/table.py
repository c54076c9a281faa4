"""The commands, in the order in which a newcomer meets them.

A command lives in ``cli/<module>.py`` as ``command``; it is imported only when it is
used, so that ``routeproof --help`` stays quick.
"""

from typing import NamedTuple


class Entry(NamedTuple):
    """One command: the module that holds it and its line in ``--help``."""

    module: str
    summary: str


COMMANDS: dict[str, Entry] = {
    "demo": Entry("demo", "Qualify a real speculative route of a real engine here."),
    "init": Entry("init", "Write a first proof file from two endpoints."),
    "probe": Entry("probe", "Say what a route is, as far as its endpoint tells."),
    "diff": Entry("diff", "Show what differs between the routes of a proof file."),
    "plan": Entry("plan", "Say how many cases the tolerances need, and the cost."),
    "qualify": Entry("qualify", "Run a proof and give the verdict."),
    "judge": Entry("judge", "Give the verdict of a run folder again."),
    "report": Entry("report", "Write the reports of a run folder."),
    "show": Entry("show", "Show one pair of answers of a run."),
    "compare": Entry("compare", "Compare two runs of the same proof."),
    "history": Entry("history", "Show all runs of a route over time."),
    "review": Entry("review", "Let people judge sampled answers, blind."),
    "load": Entry("load", "Load one endpoint and measure it."),
    "worker": Entry("worker", "Send one shard of a plan."),
    "acceptance": Entry("acceptance", "Show what drafts were worth, and its drift."),
    "tune": Entry("tune", "Search the draft length that serves best."),
    "monitor": Entry("monitor", "Watch the acceptance of a live engine."),
    "import": Entry("import_", "Turn public data sets and results into cases."),
    "canary": Entry("canary", "Serve a canary, promote it or roll it back."),
    "simulate": Entry("simulate", "Serve a simulated engine, with faults if asked."),
    "selftest": Entry("selftest", "Show the smallest faults a proof would notice."),
    "schema": Entry("schema", "Print the JSON Schema of the proof file."),
    "engine": Entry("engine", "Fetch the embedded engine and model."),
}
