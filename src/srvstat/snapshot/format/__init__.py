"""The format of the snapshot file: tables, rows, encodings and digests."""
