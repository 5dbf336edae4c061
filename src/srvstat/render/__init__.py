"""Answers as text for a person."""
