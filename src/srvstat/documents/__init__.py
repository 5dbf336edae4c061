"""Documents: what commands show besides the API's answers, one file for each subject.

The JSON of a model is part of the interface. A dataclass has no JSON; it holds what a table or a
summary shows.
"""
