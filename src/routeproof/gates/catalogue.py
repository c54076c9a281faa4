"""Every check of every gate, as the reference page prints it."""

from typing import NamedTuple

from routeproof.gates.result import GateName


class Asked(NamedTuple):
    """One kind of check.

    Attributes:
        name: As in results; ``*`` stands for what varies.
        asks: The question.
        fails: When it is ``failed``.
        stays_open: When it is ``inconclusive`` or ``not_measured``.
    """

    gate: GateName
    name: str
    asks: str
    fails: str
    stays_open: str


CHECKS: tuple[Asked, ...] = (
    Asked(
        "inventory",
        "written_down[*]",
        "is every field of the route known, and by whom?",
        "never",
        "a required field that nobody states; a field a server can belie that only the "
        "proof file states, unless routeproof launched the engine by the command there",
    ),
    Asked(
        "inventory",
        "pinned[*]",
        "do revisions name one thing for ever?",
        "a revision such as `main` or `latest`",
        "neither a revision nor a digest of the model is known",
    ),
    Asked(
        "inventory",
        "real_acceptance",
        "does the model itself decide what is accepted?",
        "acceptance is synthetic or forced: no verdict is given",
        "never",
    ),
    Asked(
        "inventory",
        "paired",
        "do draft and target split text into the same tokens?",
        "their tokenizers differ",
        "one of them is not known",
    ),
    Asked(
        "inventory",
        "maturity",
        "how far is the runtime from a release?",
        "never",
        "below `merged` (the verdict waits), or nobody states it",
    ),
    Asked(
        "parity",
        "same_routes*",
        "is everything equal but what `changes` names?",
        "an undeclared difference, a contradicted field, other prompt tokens for the "
        "same case, a fingerprint that changes during the run: no verdict is given",
        "the run holds no inventory",
    ),
    Asked(
        "parity",
        "same_workload",
        "were both arms sent the same cases?",
        "they share less than half of them: no verdict is given",
        "an arm is absent",
    ),
    Asked(
        "parity",
        "same_parameters",
        "was each pair sent the same parameters?",
        "a pair was not: no verdict is given",
        "not asked of a run that does not tell (imported, or of an older version)",
    ),
    Asked(
        "parity",
        "interleaved",
        "did blocks of the arms take turns?",
        "never",
        "one arm ran after the other, or there are too few blocks to tell",
    ),
    Asked(
        "parity",
        "control",
        "did the baseline run against itself (A/A)?",
        "never",
        "it did not: the noise of the stack is unknown",
    ),
    Asked(
        "parity",
        "same_baseline",
        "does a baseline whose answers were taken over still give the same ones?",
        "answers asked again differ more often than the noise of the earlier run "
        "explains: no verdict is given",
        "nothing could be asked again to compare (no control, or sampled answers); not "
        "asked where nothing was taken over",
    ),
    Asked(
        "parity",
        "same_cache",
        "did prompt caches do the same share of the work in what is timed?",
        "the shares differ by more than 10 points in a stage that is timed",
        "not asked where an engine does not tell cached tokens",
    ),
    Asked(
        "acceptance",
        "identities",
        "do the engine's counts agree with each other?",
        "the route is configured to speculate and drafted nothing",
        "counts contradict each other",
    ),
    Asked(
        "acceptance",
        "natural_texts",
        "can acceptance over these cases mean anything?",
        "never",
        "cases with `ignore_eos`, forced lengths, random tokens or repeated prompts",
    ),
    Asked(
        "acceptance",
        "tokens_per_pass",
        "does a decode pass yield enough tokens?",
        "the upper limit of its interval is below the floor agreed",
        "the interval holds the floor, or the engine does not tell",
    ),
    Asked(
        "acceptance",
        "acceptance_rate",
        "are enough drafts accepted?",
        "as above",
        "as above",
    ),
    Asked(
        "acceptance",
        "acceptance_factor",
        "does a pass yield more than one token, for sure?",
        "never",
        "its interval reaches down to 1",
    ),
    Asked(
        "acceptance",
        "step_factor",
        "does a drafting pass take less longer than it yields?",
        "never",
        "the upper limit of the step ratio is not below the tokens per pass",
    ),
    Asked(
        "acceptance",
        "break_even",
        "does a pass yield more tokens than it costs plain passes?",
        "never (the latency gate judges the speed)",
        "it does not",
    ),
    Asked(
        "acceptance",
        "collapse[*]",
        "does a class of requests pay more for the draft than it gets?",
        "the upper limit of its tokens per pass is below the cost of a pass, by 5 %",
        "never",
    ),
    Asked(
        "acceptance",
        "holds_under_load",
        "is the draft as good under load?",
        "intervals of the lowest and the top load do not meet, and 10 % are lost",
        "never",
    ),
    Asked(
        "acceptance",
        "recovers_after_load",
        "is it as good as before once the load is gone (a ramp up and down)?",
        "as above, between the first and the last time at the lowest load",
        "never",
    ),
    Asked(
        "acceptance",
        "drift",
        "is acceptance what it was in the stored reference of the same workload?",
        "tokens per pass or acceptance rate fell by more than `fall_max_share` and by "
        "more than 3 standard errors, overall or in a class",
        "the reference was made on another workload",
    ),
    Asked(
        "acceptance",
        "trend[acceptance_rate]",
        "is it as good after hours?",
        "it falls by more than 20 % over the soak, significantly, and by more than "
        "twice what the baseline shows",
        "never",
    ),
    Asked(
        "latency",
        "slo[*]",
        "is the service level kept at the target load (the top of the sweep)?",
        "the lower limit of the percentile is outside, or the percentile falls among "
        "the failures",
        "the interval holds the limit, or there are too few requests for it",
    ),
    Asked(
        "latency",
        "gain[*]",
        "is the gain there that was asked for?",
        "the upper limit of the paired gain is below it; who asks for 1.0 asks for no "
        "gain, and then a candidate that is shown to be slower",
        "the interval holds what was asked, the gain is inside the noise of the A/A "
        "control, or fewer than four interleaved blocks ran",
    ),
    Asked(
        "latency",
        "not_because_shorter",
        "is it faster at equal output length too?",
        "slower among the pairs of equal length, while answers are shorter",
        "it may be either",
    ),
    Asked(
        "latency",
        "not_slower[*]",
        "is any time worse at any declared load?",
        "worse beyond `worse_tolerance_ratio` and by a time that can be noticed, "
        "significantly, and beyond what the baseline shows against itself",
        "a loss beyond the tolerance is not excluded (shown, not required)",
    ),
    Asked(
        "latency",
        "slower_at_peak[*]",
        "fast when idle, slower at peak?",
        "a gain at the lowest load and a shown loss at the highest",
        "never",
    ),
    Asked(
        "correctness",
        "*",
        "is the quality within tolerance: each question of the proof file, the headline"
        " score of each required class, and every slice that nobody asked for?",
        "harm is shown and a loss larger than the tolerance is not excluded, or it is "
        "shown to be larger; of a slice nobody asked for, after Holm's correction",
        "too few pairs, missing pairs that could hide a loss, fewer units than a "
        "required class asks for",
    ),
    Asked(
        "correctness",
        "no_errors*",
        "do as many requests end well?",
        "errors are more frequent, as above with a tolerance of 2 points; the same for "
        "`not_truncated`, `not_empty` and `not_filtered`",
        "as above (shown, not required)",
    ),
    Asked(
        "correctness",
        "*_honoured",
        "are stop strings, `max_tokens`, `n`, `logprobs` and seeds honoured?",
        "a new failure, where the A/A control shows none; `seed_honoured`: requests "
        "sent twice with one seed are answered alike by the baseline and, "
        "significantly and by four fifths less often, by the candidate",
        "failures that the control shows too",
    ),
    Asked(
        "correctness",
        "guard[*]",
        "does the candidate loop, babble, or write much longer or shorter answers?",
        "more degenerate answers, significantly and by 2 points; output length outside "
        "1 +- `length_ratio_guard`. Speed and acceptance are void then",
        "the length may be outside",
    ),
    Asked(
        "correctness",
        "greedy_equality*",
        "does a lossless change give the same greedy texts, alone and at every load?",
        "real divergences beyond those of the A/A control, unless the change is judged "
        "as lossy (`policy: {plan: full}`, or all cases after a spot check)",
        "divergences that cannot be told from near ties, and so few cases that fewer "
        "matches than the baseline has with itself (by 3 points) are not excluded",
    ),
    Asked(
        "correctness",
        "sampled[*]",
        "do sampled answers of a lossless change come from the same distribution?",
        "a significant difference that the A/A control does not show (`sampled_tokens` "
        "and `siblings`: at a fifth of alpha)",
        "the control shows it too, or one of those two is in doubt; that none is found "
        "proves none, and the reason says what would have been seen",
    ),
    Asked(
        "correctness",
        "probe[*]",
        "small questions with one right answer, put to both routes before the run: is "
        "the stream what the whole answer is, a warm answer what a cold one is, does "
        "each sampling field do what it says, are log probabilities honest?",
        "the candidate breaks what the baseline keeps: once where only a fault can, "
        "significantly more often where texts may differ at near ties",
        "in between (shown, not required); not asked where the baseline does not keep "
        "it, or one of them refuses the field",
    ),
    Asked(
        "memory_stability",
        "telemetry",
        "was the engine sampled at all?",
        "never",
        "no telemetry",
    ),
    Asked(
        "memory_stability",
        "peak_memory",
        "does it fit?",
        "peak above `peak_bytes_ratio_max` times the baseline's",
        "a limit is agreed and nothing was sampled",
    ),
    Asked(
        "memory_stability",
        "kv_capacity",
        "is the KV cache large enough?",
        "capacity below `kv_capacity_ratio_min` times the baseline's",
        "a limit is agreed and the engine does not tell",
    ),
    Asked(
        "memory_stability",
        "leak",
        "does memory grow over the soak?",
        "the lower limit of the slope is above `leak_bytes_per_hour_max`",
        "the slope is above it and its interval is not, or there was no soak; without "
        "an agreed limit, a growth beyond the baseline's by 1 % of the peak an hour",
    ),
    Asked(
        "memory_stability",
        "kv_after_drain",
        "are KV blocks given back?",
        "more than 5 points above the baseline's are in use after the last request",
        "never",
    ),
    Asked(
        "memory_stability",
        "preemptions",
        "are requests pushed out of the batch?",
        "more often than on the baseline, significantly and by 1 in 100 requests",
        "never",
    ),
    Asked(
        "memory_stability",
        "crashes, restarts, stuck_streams, http_5xx, timeouts, connection_errors, "
        "cut_short",
        "does it stay up?",
        "one crash or restart of the candidate; one stuck stream more than on the "
        "baseline. The others are shown, and judged by `no_errors`",
        "never",
    ),
    Asked(
        "memory_stability",
        "normal_stops",
        "do answers of the soak end by themselves?",
        "abnormal ends are more frequent than on the baseline, significantly and by 2 "
        "points",
        "never",
    ),
    Asked(
        "memory_stability",
        "trend[*]",
        "is it as fast after hours?",
        "a time rises by more than 20 % over the soak, significantly, and by more than "
        "twice what the baseline shows",
        "never",
    ),
    Asked(
        "rollback",
        "drilled",
        "was the way back walked?",
        "the drill failed",
        "it was never drilled: the verdict is a pilot at most",
    ),
)


def checks_page() -> str:
    """The checks as Markdown tables, one for each gate."""
    lines: list[str] = []
    for gate in dict.fromkeys(check.gate for check in CHECKS):
        lines += [f"### `{gate}`", "", "| check | asks | fails | stays open |"]
        lines += ["|---|---|---|---|"]
        lines += [
            f"| `{check.name}` | {check.asks} | {check.fails} | {check.stays_open} |"
            for check in CHECKS
            if check.gate == gate
        ]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"
