"""Read the OpenAPI document of the HTTP service, which docs/generate.py writes."""

import os


def read_openapi() -> bytes:
    """Return the document: indented JSON in UTF-8 that ends with a newline."""
    # importlib.resources takes longer to import than the whole command to run.
    with open(os.path.join(os.path.dirname(__file__), "openapi.json"), "rb") as file:
        return file.read()
