"""Answer requests of the API, for a caller with or without a plan."""
