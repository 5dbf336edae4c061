"""What a command line may say of an input: where it is, and what it holds."""

from typing import Literal, get_args

Format = Literal["csv", "ndjson"]
FORMATS: tuple[Format, ...] = get_args(Format)
