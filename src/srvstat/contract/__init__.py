"""The published API: errors, ranges, instants, requests, responses and their exact bytes."""

CONTRACT_VERSION = "1.0.0"

__version__ = "1.0.0.dev0"
