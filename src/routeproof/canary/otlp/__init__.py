"""Tasted answers and metrics sent to an OpenTelemetry collector."""
