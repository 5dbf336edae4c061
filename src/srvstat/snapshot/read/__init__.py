"""Read a snapshot file. Each row is verified against its digest first."""
