"""Documents of our own: what commands show besides the API's answers, one file for each.

A model is strict, and its JSON is part of the interface. A dataclass is never JSON: it holds what a
table or a summary shows.
"""
