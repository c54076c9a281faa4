"""Statistics of "no worse": knows nothing of requests, only of arrays."""
