"""From a client to an upstream and back: bytes, deadlines, disconnects."""
