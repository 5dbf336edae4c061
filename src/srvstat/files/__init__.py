"""File handling that all packages share."""
