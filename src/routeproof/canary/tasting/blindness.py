"""When nobody would see harm: the candidate gets nothing until somebody does again."""

from routeproof.canary.tasting.taster import Taster
from routeproof.errors import StoredRunError

PATIENCE_S = 1.0


def blindness(taster: Taster, lease_s: float) -> str | None:
    """Why harm would go unseen now, or ``None``.

    Too few answers, a long queue or unequal drops are no blindness: what comes is
    still looked at.

    Args:
        taster: Who looks.
        lease_s: Of it one answer may be looked at for half, at least for a second.
    """
    if not taster.is_alive():
        return "the scorer is not running"
    if taster.disk_error is not None or taster.memory_error is not None:
        return taster.disk_error or taster.memory_error
    stuck_s = taster.stuck_s()
    if stuck_s > max(PATIENCE_S, lease_s / 2):
        return f"the scorer has been at one answer for {stuck_s:.0f} s"
    return None


def try_disk(taster: Taster) -> None:
    """See whether a disk that was full takes samples again.

    A candidate that gets nothing brings no samples by which it would show.
    """
    if taster.disk_error is None:
        return
    try:
        taster.spool.try_write()
    except StoredRunError as error:
        taster.disk_error = error.message
    else:
        taster.last_error = taster.disk_error = None
