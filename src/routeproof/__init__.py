"""Is the faster inference route still good enough to ship?"""

__version__ = "0.1.0"
