"""One small file per command: read, call one job, print."""
