"""Which arm a request goes to, and what it may ask of it."""
