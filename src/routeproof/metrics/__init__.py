"""Vectorised functions from records to numbers; one visible table (`table.METRICS`)."""
