"""The draft-length search a run carries: ``tune.json`` in its folder."""

import msgspec

from routeproof.errors import StoredRunError
from routeproof.gates.facts import Row
from routeproof.records.store import RunFolder

SEARCH_NAME = "tune.json"


class _Search(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of a search; the rest of the file is the search's own."""

    rows: tuple[Row, ...]


def search_tables(folder: RunFolder) -> dict[str, tuple[Row, ...]]:
    """The search as a table of the judgement; none where the folder has none.

    A search is put there by ``routeproof tune``, and by whoever copies its
    ``tune.json`` into the run that is to be released.

    Raises:
        StoredRunError: The file is no record of a search.
    """
    path = folder.path / SEARCH_NAME
    if not path.exists():
        return {}
    try:
        return {"tune": msgspec.json.decode(path.read_bytes(), type=_Search).rows}
    except msgspec.DecodeError as error:
        raise StoredRunError(
            f"{path} is no record of a search: {error}",
            hint="copy the `tune.json` of `routeproof tune`, or remove the file",
        ) from None
