"""Compute the analyses, one per module; each returns a document."""
