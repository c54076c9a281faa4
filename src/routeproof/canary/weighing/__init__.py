"""Signals to evidence that may be looked at all the time."""
