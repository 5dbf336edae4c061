"""The format of the snapshot file: its tables, rows, encodings and digests."""
