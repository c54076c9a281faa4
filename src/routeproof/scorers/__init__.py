"""Text to score: each task's own ruler, one small pure function each."""
