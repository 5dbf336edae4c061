"""Replace descriptors of the process that runs the tests, and limit those of others."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager

DESCRIPTORS = 256
"""The descriptors of a limited process."""


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


@contextmanager
def limit_descriptors() -> Iterator[None]:
    """Limit the descriptors of processes started in the block."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
