"""The statistics of every server of a fleet, computed by an engine for large data."""
