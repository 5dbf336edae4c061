"""Reproduce, explain and compare API responses, for support."""
