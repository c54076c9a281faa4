"""Seven questions; each turns metrics and statistics into a result with its numbers."""
