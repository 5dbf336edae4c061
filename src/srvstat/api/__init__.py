"""The Python API: an open snapshot whose methods answer the questions of the command line."""
