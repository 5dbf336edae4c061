"""Replace descriptors of the process that runs the tests."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def replace_descriptor(number: int, descriptor: int) -> Iterator[None]:
    """Replace a descriptor, such as standard error, until the block ends."""
    kept = os.dup(number)
    os.dup2(descriptor, number)
    try:
        yield
    finally:
        os.dup2(kept, number)
        os.close(kept)
