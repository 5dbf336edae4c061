"""Reproduce, explain and compare answers, for support."""
