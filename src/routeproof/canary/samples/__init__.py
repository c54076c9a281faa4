"""Sampled answers: cleaned, sealed, kept, and what each one shows by itself."""
