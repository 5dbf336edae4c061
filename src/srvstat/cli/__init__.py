"""The command line. Typer is used here only."""
