"""Process API requests, with or without a plan."""
