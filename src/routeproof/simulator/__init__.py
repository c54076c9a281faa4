"""The simulated engine, its dialects and its faults."""
