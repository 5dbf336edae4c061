"""Answer questions beyond the API's two, each in its own file; the answers are documents."""
