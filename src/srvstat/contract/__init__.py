"""The published promise: errors, ranges, instants, requests, answers and their exact bytes."""
