"""The workload as a person writes it down: cases, sampling, trials, load."""

from typing import Literal

from routeproof.proof.route import _Strict


class SamplingSpec(_Strict, frozen=True, kw_only=True):
    """Sampling sent with every request; what is ``None`` is not sent."""

    temperature: float = 0.0
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    seed: int | None = None
    max_tokens: int | None = None


class ArrivalSpec(_Strict, frozen=True, kw_only=True):
    """One way of sending: closed (``concurrency``) or open (``request_rate``).

    Several levels are run one after the other, interleaved over the arms.

    ``ramp_s`` lets the streams of a closed level begin one after the other over that
    time. ``think_s`` makes conversations: cases of one ``cluster`` are the turns of a
    session, sent in order, each the mean think time after the answer before it;
    ``concurrency`` and ``request_rate`` then count sessions. ``null``: every case is
    on its own.
    """

    concurrency: tuple[int, ...] = ()
    request_rate: tuple[float, ...] = ()
    arrivals: Literal["constant", "poisson", "gamma"] = "poisson"
    burstiness: float = 1.0
    ramp_s: float = 0.0
    think_s: float | None = None
    trace: str | None = None
    duration_s: float | None = None
    requests: int | None = None


class LoadSpec(_Strict, frozen=True, kw_only=True):
    """The stages of a qualification, in the order in which they run.

    ``quality`` sends the golden set, ``latency`` measures a single stream,
    ``sweep`` climbs the load, ``soak`` stays there.
    """

    quality: ArrivalSpec = ArrivalSpec(concurrency=(1,))
    latency: ArrivalSpec | None = ArrivalSpec(concurrency=(1,))
    sweep: ArrivalSpec | None = None
    soak: ArrivalSpec | None = None
    cache: Literal["cold", "warm", "as_is"] = "as_is"
    block_size: int = 8
    warmup_requests: int = 4
    request_timeout_s: float = 120.0
    max_failure_share: float = 1.0


class WorkloadSpec(_Strict, frozen=True, kw_only=True):
    """Cases, sampling, trials, seed, load.

    ``cases`` are paths or globs relative to the proof file, or ``golden`` for the
    set that ships with routeproof.
    """

    cases: tuple[str, ...] = ("golden",)
    classes_required: dict[str, int] = {}
    sampling: SamplingSpec = SamplingSpec()
    trials: int = 1
    seed: int = 20261130
    max_cases: int | None = None
    stream: bool = True
    load: LoadSpec = LoadSpec()
