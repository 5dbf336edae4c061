"""Read a snapshot file; every row is verified against its digest first."""
