"""Records as columns, for the tests of metrics and gates."""

from record_cases import a_record

from routeproof.metrics.per_request import per_request
from routeproof.metrics.requests import gather
from routeproof.records.schema import columns_of, records_of


def columns(*records):
    """Records as the store would give them back."""
    stored, _ = columns_of(list(records))
    return records_of(len(records), stored)


def one(**changes):
    """A single record as columns."""
    return columns(a_record(**changes))


def value(column, row=0):
    """The number of one row, ``None`` when unknown."""
    return float(column.values[row]) if column.known[row] else None


def requests(*records):
    """Records reduced and gathered, as a judge has them."""
    return gather([per_request(columns(*records))])
