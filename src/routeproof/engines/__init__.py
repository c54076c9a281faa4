"""One adapter per engine: read-back, metric names, per-request details, launch."""
