"""Settings of all tests: generated examples are the same on every run and machine."""

from hypothesis import settings

settings.register_profile("house", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("house")
