"""How each engine writes what it says: pages, errors, usage, per-request figures."""
