"""What the files a launch command names say, where they are on this machine.

An engine that we start reads files we can read, too. Their tokenizers show whether a
draft fits its target, before a single token is drafted.
"""

import hashlib
from functools import lru_cache
from pathlib import Path

from routeproof.errors import FormatError
from routeproof.proof.route import RouteSpec
from routeproof.routes.alignment import AlignmentProblem, alignment_problems
from routeproof.routes.option_files import launched_fields
from routeproof.routes.read_back import ReadBack
from routeproof.routes.tokenizer_files import TokenizerFacts, read_tokenizer

MODEL, DRAFT = "model", "speculation.draft.model"

HASHED_BYTES = 1 << 30
"""Largest model file that is hashed; larger ones need their revision written down."""


def local_fields(spec: RouteSpec, read_back: ReadBack | None) -> dict[str, str]:
    """Route fields from the model files of a launched engine.

    ``model.digest`` (SHA-256 of a single file up to 1 GiB), ``tokenizer.digest``,
    ``tokenizer.vocabulary_size``, ``speculation.draft.tokenizer`` (the digest of the
    draft's) and ``observed.alignment`` (what does not fit, in words).

    Args:
        spec: The route; without ``launch`` nothing is looked at.
        read_back: Says where the engine found its model, for commands whose paths are
            filled in only when launched.
    """
    target, draft = _paths(spec, read_back)
    if target is None:
        return {}
    found: dict[str, str] = {}
    if target.is_file() and target.stat().st_size <= HASHED_BYTES:
        found["model.digest"] = f"sha256:{_sha256(target)}"
    facts = _facts(target)
    if facts is None:
        return found
    found["tokenizer.digest"] = facts.digest
    found["tokenizer.vocabulary_size"] = str(facts.vocabulary_size)
    if facts.template_digest and not _overridden(spec):
        found["tokenizer.chat_template_digest"] = facts.template_digest
    of_draft = None if draft is None else _facts(draft)
    if of_draft is not None:
        found["speculation.draft.tokenizer"] = of_draft.digest
        problems = alignment_problems(facts, of_draft)
        if problems:
            found["observed.alignment"] = "; ".join(_words(p) for p in problems)
    return found


def _paths(
    spec: RouteSpec, read_back: ReadBack | None
) -> tuple[Path | None, Path | None]:
    if spec.launch is None:
        return None, None
    named = launched_fields(spec.launch)
    loaded = read_back.fields.get(MODEL) if read_back else None
    target = _existing(spec, named.get(MODEL)) or _existing(spec, loaded)
    draft = _existing(spec, named.get(DRAFT))
    if draft is None and named.get(DRAFT) == named.get(MODEL):
        # Both are the same placeholder, filled in when the engine is launched.
        draft = target
    return target, draft


def _existing(spec: RouteSpec, text: str | None) -> Path | None:
    if text is None or "{" in text:
        return None
    path = Path(text).expanduser()
    if not path.is_absolute() and spec.launch is not None and spec.launch.cwd:
        path = Path(spec.launch.cwd) / path
    return path if path.exists() else None


def _facts(path: Path) -> TokenizerFacts | None:
    return _facts_at(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _facts_at(path: Path, changed_ns: int) -> TokenizerFacts | None:
    """Both arms usually name the same files; ``changed_ns`` tells newer ones."""
    try:
        return read_tokenizer(path)
    except FormatError:
        return None


def _overridden(spec: RouteSpec) -> bool:
    """Whether the command serves another template than that of the files."""
    return "tokenizer.chat_template" in launched_fields(spec.launch)


def _words(problem: AlignmentProblem) -> str:
    return f"{problem.why} ({problem.target} and {problem.draft})"


def _sha256(path: Path) -> str:
    return _sha256_at(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _sha256_at(path: Path, changed_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
