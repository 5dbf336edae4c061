"""Questions beyond the API's two: one file for each, from a snapshot to a document."""
