"""The function behind each command: reads, calls the rooms in order, returns."""
