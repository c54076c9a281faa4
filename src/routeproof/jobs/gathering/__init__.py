"""A run folder, read once, as the evidence that the gates judge."""
