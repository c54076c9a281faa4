"""Settings of all tests: generated examples are the same on every run and machine."""

import pytest
from hypothesis import settings

settings.register_profile("house", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("house")


def pytest_collection_modifyitems(items):
    """Tests with a real engine run one at a time: two engines starve each other."""
    for item in items:
        if item.get_closest_marker("engine"):
            item.add_marker(pytest.mark.xdist_group("engine"))
