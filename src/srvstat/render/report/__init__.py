"""A report as one HTML page, which needs no other file and no network."""
