"""The published promise: errors, ranges, instants, requests, answers and their exact bytes."""

CONTRACT_VERSION = "1.0.0"
