"""Routes: inventory, diff, change classes, parity, pairing lock."""
