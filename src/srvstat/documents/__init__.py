"""Documents: what commands show besides the API's answers, one file each.

The JSON of a model is part of the interface. A dataclass has no JSON; it holds what a table or a
summary shows.
"""
