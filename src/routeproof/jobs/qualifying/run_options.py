"""How a proof is run: what the command line adds to the proof file."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from routeproof.engines.embedded import Progress as Download
from routeproof.errors import ConfigError, StoredRunError
from routeproof.jobs.qualifying.until_decided import check_stage
from routeproof.proof.policy import UntilDecidedSpec
from routeproof.proof.proof import Proof
from routeproof.proof.workload import ArrivalSpec
from routeproof.records.store import RunFolder
from routeproof.runs.conduct import Progress


@dataclass(frozen=True, slots=True)
class Listener:
    """Who is told while the run goes on; both may be ``None``."""

    download: Download | None = None
    requests: Callable[[Progress], None] | None = None
    words: Callable[[str], None] | None = None

    def say(self, text: str) -> None:
        """Pass a sentence on."""
        if self.words is not None:
            self.words(text)


SOAK_FLOOR_S = 60.0
"""A shorter soak shows no trend: its thirds hold too few requests."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a proof is run.

    Attributes:
        keep_going: Measure speed although quality failed.
        has_control: Run the baseline against itself too (A/A).
        resume: Go on with the run in the folder.
        until_decided: Draw cases at random and stop as soon as it is decided.
        soak_s: Stay at the top load for so long on each arm.
        reuse_baseline: A run whose baseline answers are taken over.
        is_relocked: The pairing lock is to be written anew, so what it says now does
            not stop the run.
        has_probes: Put the probes of a lossless change to both routes first.
        has_features: Try features that the workload does not use.
    """

    keep_going: bool = False
    has_control: bool = True
    resume: bool = False
    until_decided: bool = False
    soak_s: float | None = None
    reuse_baseline: Path | None = None
    is_relocked: bool = False
    has_probes: bool = True
    has_features: bool = True


def opened(proof_path: Path, out: Path, *, is_resumed: bool) -> RunFolder:
    """The run folder, made or found."""
    if not is_resumed:
        return RunFolder.create(out)
    folder = RunFolder.open(out)
    text = proof_path.read_bytes()
    if folder.proof_path.exists() and folder.proof_path.read_bytes() != text:
        raise ConfigError(
            f"differs from the proof that was run in {out}",
            path=proof_path,
            hint=f"resume with {folder.proof_path}, or start a new run",
        )
    return folder


def with_options(proof: Proof, options: Options) -> Proof:
    """The proof as it will be run and judged.

    Raises:
        ConfigError: The quality stage cannot be stopped early, or the soak is too
            short.
    """
    policy, load = proof.policy, proof.workload.load
    if options.until_decided and policy.until_decided is None:
        policy = msgspec.structs.replace(policy, until_decided=UntilDecidedSpec())
    if options.soak_s is not None:
        load = msgspec.structs.replace(load, soak=_soak(proof, options.soak_s))
    workload = msgspec.structs.replace(proof.workload, load=load)
    whole = msgspec.structs.replace(proof, policy=policy, workload=workload)
    if policy.until_decided is not None:
        check_stage(whole)
    return whole


def _soak(proof: Proof, duration_s: float) -> ArrivalSpec:
    """The soak of the proof, else its target load, for so long."""
    if duration_s < SOAK_FLOOR_S:
        raise ConfigError(
            f"a soak of {duration_s:g} s shows no trend",
            key="--soak",
            hint=f"give at least {SOAK_FLOOR_S:g} s, better 30m",
        )
    load = proof.workload.load
    if load.soak is not None:
        asked = load.soak
    else:
        top = load.sweep or load.latency or load.quality
        asked = ArrivalSpec(
            concurrency=(max(top.concurrency),) if top.concurrency else (),
            request_rate=(max(top.request_rate),)
            if top.request_rate and not top.concurrency
            else (),
            arrivals=top.arrivals,
            burstiness=top.burstiness,
        )
        if not asked.concurrency and not asked.request_rate:
            asked = ArrivalSpec(concurrency=(1,))
    return msgspec.structs.replace(asked, duration_s=duration_s, requests=None)


def as_begun(folder: RunFolder, proof: Proof, asked: Proof) -> Proof:
    """The proof a run was begun with, for going on with it.

    Args:
        folder: The run.
        proof: As the file says it.
        asked: With the options of this call.

    Raises:
        StoredRunError: Options of this call contradict those it was begun with.
    """
    if not folder.manifest_path.exists():
        return asked
    begun = _proof_in(folder)
    for name, of in _SWITCHES.items():
        first, now, plain = of(begun), of(asked), of(proof)
        if now not in (first, plain):
            raise StoredRunError(
                f"{folder.path} was begun with another `{name}`",
                hint="leave the option out when resuming: the run knows it",
            )
    policy = msgspec.structs.replace(
        asked.policy, until_decided=begun.policy.until_decided
    )
    load = msgspec.structs.replace(asked.workload.load, soak=begun.workload.load.soak)
    workload = msgspec.structs.replace(asked.workload, load=load)
    return msgspec.structs.replace(asked, policy=policy, workload=workload)


def _stopping(proof: Proof) -> Any:
    return proof.policy.until_decided


def _soaking(proof: Proof) -> Any:
    return proof.workload.load.soak


_SWITCHES = {"--until-decided": _stopping, "--soak": _soaking}


def _proof_in(folder: RunFolder) -> Proof:
    manifest = folder.read_manifest()
    try:
        return msgspec.convert(manifest.proof, Proof)
    except msgspec.ValidationError as error:
        raise StoredRunError(
            f"{folder.manifest_path}: the proof in it cannot be read: {error}",
            hint="go on with it by the version of routeproof that began it",
        ) from None
