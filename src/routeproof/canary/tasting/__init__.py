"""Off the event loop: copies to samples to signals, and others asked for opinions."""
