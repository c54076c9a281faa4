"""What differs between the routes of a proof; nothing is sent to a model."""

import asyncio
import shutil
import tempfile
from pathlib import Path

from routeproof.engines.embedded import Progress
from routeproof.jobs.qualifying.stand_up import stand_up
from routeproof.proof.file import load_proof
from routeproof.proof.proof import Proof
from routeproof.routes.diff import diff as compare
from routeproof.routes.inventory import RouteDiff, take_inventory
from routeproof.routes.resolve import resolve


def diff(
    proof_path: Path, *, offline: bool = False, progress: Progress | None = None
) -> RouteDiff:
    """The route diff of a proof file.

    Args:
        proof_path: The proof file.
        offline: Compare what is declared only; ask no endpoint, start no engine.
        progress: Told of downloads, when the embedded engine is asked for.

    Raises:
        ConfigError: The file or an endpoint is wrong.
        EngineError: An engine did not start.
    """
    proof = load_proof(proof_path)
    if offline:
        baseline, candidate = resolve(proof)
        return compare(
            take_inventory(baseline, None), take_inventory(candidate, None), candidate
        )
    return asyncio.run(_online(proof, progress))


async def _online(proof: Proof, progress: Progress | None) -> RouteDiff:
    """The logs of launched engines outlive a failure only: its error names them."""
    logs = Path(tempfile.mkdtemp(prefix="routeproof-diff-"))
    async with stand_up(proof, logs=logs, progress=progress) as routes:
        found = routes.found
    shutil.rmtree(logs, ignore_errors=True)
    return found
