"""Define the form of identifiers (specification, section 8).

This module needs no library, so that readers of sources need none either.
"""

MAX_IDENTIFIER_LENGTH = 128
IDENTIFIER_PATTERN = rf"[A-Za-z0-9-]{{1,{MAX_IDENTIFIER_LENGTH}}}"
"""A pattern of a valid identifier; match it against the full text."""
