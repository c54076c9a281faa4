"""What the probes of two standing routes brought, as a run keeps it."""

import msgspec

from routeproof.errors import StoredRunError
from routeproof.gates.probed import Probed, decode_probed
from routeproof.records.store import RunFolder

FILE_NAME = "probes.json"


def stored_probes(folder: RunFolder) -> Probed | None:
    """What the probes of a run brought; ``None`` when none were made.

    Raises:
        StoredRunError: The file is damaged.
    """
    path = folder.path / "probe" / FILE_NAME
    if not path.exists():
        return None
    try:
        return decode_probed(path.read_bytes())
    except msgspec.MsgspecError as error:
        raise StoredRunError(f"{path}: cannot be read: {error}") from None
