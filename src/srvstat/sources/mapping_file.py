"""Read and write mapping files: the options of a mapping as TOML.

The keys are the names of the options. `columns` and `wide` are tables:

    from = "csv"
    columns.id = "name"
    columns.at = "timestamp"
    time-zone = "Europe/Berlin"
"""

from srvstat.contract import wire
from srvstat.contract.errors import SourceError
from srvstat.files.reading import format_title, open_input
from srvstat.files.toml_lines import TomlError, find_line, read_toml
from srvstat.sources.mapping_options import MappingOptions, build_options

_MAX_BYTES = 1 << 16


def read_mapping_file(path: str) -> MappingOptions:
    """Return the options in a mapping file.

    Raises SourceError, with the line of the problem.
    """
    title = format_title(path)
    with open_input(path) as file:
        content = file.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise SourceError(f"{title}: longer than {_MAX_BYTES:,} bytes, so it is no mapping file")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SourceError(f"{title}: not UTF-8") from None
    try:
        values = read_toml(text)
    except TomlError as error:
        raise SourceError(f"{title}, line {error.line}: {error}") from None
    return build_options(
        values,
        lambda name, reason: SourceError(
            f"{title}, line {find_line(text, (name,))}: {name}: {reason}"
        ),
    )


def format_mapping_file(options: MappingOptions) -> bytes:
    """Return the text of a mapping file, without the options that are not given."""
    lines = {
        "from": options.from_,
        **{f"columns.{key}": name for key, name in options.columns.items()},
        "wide.at": options.wide,
        "time-zone": options.time_zone,
        "time-unit": options.time_unit,
        "ids": options.ids,
        "game": options.game,
    }
    text = "".join(f"{name} = {_quote(value)}\n" for name, value in lines.items() if value)
    return text.encode()


def _quote(text: str) -> str:
    """Return a text as a string of TOML, whose escapes are those of JSON, and also for DEL."""
    return wire.encode(text).decode().replace("\x7f", r"\u007f")
