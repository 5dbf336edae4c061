"""Compute the statistics of every server of a fleet with an engine for large data."""
