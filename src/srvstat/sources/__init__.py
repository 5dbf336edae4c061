"""Readers of input files, one module for each format."""
