"""The live gateway: relay, split, sampling, scoring, sequential tests, rollback."""
