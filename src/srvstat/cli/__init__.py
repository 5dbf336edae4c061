"""The command line. Only this package uses Typer."""
