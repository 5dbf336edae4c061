"""The command line: parse, call, render. Typer lives here."""
