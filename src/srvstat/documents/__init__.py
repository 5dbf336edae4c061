"""Documents of our own: what commands print beside the answers of the API."""
