"""Readers of the input files: one file each format."""
