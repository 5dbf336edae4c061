"""Write a snapshot file from sources."""
