"""Render answers and documents as text for people."""
