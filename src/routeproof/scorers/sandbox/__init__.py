"""Run programs that a model wrote, without Docker and without trusting them."""
