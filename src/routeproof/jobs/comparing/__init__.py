"""Two runs of one proof side by side."""
