"""Read JSON: observations as NDJSON, and documents of any structure.

Our own form of NDJSON has the keys `serverId`, `observedAt` and `players`, and no others. A mapping
names the keys of other objects, or the paths that `flatten` gives them.

Most values of a file differ only in their strings and numbers. A regular expression derived from
one of them extracts the others in half the time of decoding.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from json import JSONDecodeError
from typing import Any

from srvstat.contract import wire
from srvstat.contract.errors import SourceError
from srvstat.sources import flatten
from srvstat.sources.flatten import FlattenError
from srvstat.sources.mapping import STRICT, ColumnMapping
from srvstat.sources.source import BLOCK_BYTES, Batch, Reject, Source, TextBlock
from srvstat.sources.tables import SAMPLE_ROWS, Sample, Table, convert_table
from srvstat.sources.values import COUNT_RULE, IDENTIFIER_RULE, RowError

OTHER_KEYS = "must be an object with the keys serverId, observedAt and players"
"""The reason to reject a row in the strict form."""

AS_INTEGER = "written as an integer"
"""The end of the reason to reject a count in the strict form."""

_END = "\x1e"
"""Ends each value of a text. JSON can't contain this character."""

_ITEMS = 20_000
"""The approximate number of items expanded at once. Rows take much more memory than their text."""
_ROWS_PER_TABLE = 10_000


def read(source: Source) -> Iterator[Batch]:
    """Read the observations of NDJSON, block by block.

    Raises SourceError if the mapping's keys are missing, and the errors of `Source.read_blocks`.
    """
    regular, rows = _Regular(source.mapping), _Rows(source.mapping)
    for block in source.read_blocks():
        yield _read_lines(source, block, regular, rows)


def read_sample(source: Source) -> Sample:
    """Return the first rows of NDJSON.

    Raises SourceError if the source can't be read.
    """
    lines = [*islice(source.read_lines(), SAMPLE_ROWS + 1)]
    values, rejects = _decode_lines(lines[:SAMPLE_ROWS], _get_decoder(source.mapping))
    found = _expand_lines(_Rows(source.mapping, is_sample=True), values, rejects)
    is_whole = max(len(lines), len(found)) <= SAMPLE_ROWS
    return Sample("NDJSON", _build_table([row for _, row in found[:SAMPLE_ROWS]]), is_whole)


def read_document(source: Source) -> Iterator[Batch]:
    """Read the observations of a document. The place of a row is its number.

    Raises SourceError if the source can't be read, is not JSON, is too long and not an array, or
    lacks keys of the mapping.
    """
    rows = _Rows(source.mapping)
    place = 1
    for part in _Document(source, source.mapping.write_number).read():
        for table in [part] if isinstance(part, Table) else rows.build_tables(source, part):
            yield convert_table(source, rows.complete(_number_rows(table, place)))
            place += len(table.places)


def read_document_sample(source: Source) -> Sample:
    """Return the first rows of a document, in a time that does not depend on its length.

    Raises SourceError if the source can't be read or is not JSON.
    """
    found: list[flatten.Row] = []
    # A prefix of parallel arrays may contain only times and no counts.
    for characters in (_WHOLE_CHARACTERS, _MAX_CHARACTERS):
        values, is_whole = _Document(source, source.mapping.write_number).read_prefix(characters)
        items = _find_items(values)
        items = items if is_whole else items[:-1] or items
        try:
            first = flatten.cut(items, SAMPLE_ROWS)
            found = [row for _, row in _Rows(source.mapping, is_sample=True).expand(first)]
        except FlattenError as error:
            if is_whole or characters == _MAX_CHARACTERS:
                raise SourceError(f"{source.title}: {error}") from None
            continue
        is_whole = is_whole and first == items
        if is_whole or any(map(flatten.is_time, chain(*map(dict.values, found[:SAMPLE_ROWS])))):
            break
    is_whole = is_whole and len(found) <= SAMPLE_ROWS
    return Sample("JSON", _build_table(found[:SAMPLE_ROWS]), is_whole)


def read_values(source: Source, convert_number: Callable[[str], Any] | None = str) -> list[Any]:
    """Return the concatenated documents of a source. By default numbers are text.

    Raises SourceError if the source can't be read, is empty or too long, or is not JSON.
    """
    return _Document(source, convert_number).read_values()


def read_first_values(source: Source) -> tuple[list[Any], bool]:
    """Return the documents of a source, or only the first if it is long, and whether these are all.

    Raises the errors of `read_values`.
    """
    return _Document(source).read_prefix(_WHOLE_CHARACTERS)


def _read_lines(source: Source, block: TextBlock, regular: "_Regular", rows: "_Rows") -> Batch:
    """Read the lines of a block. A malformed line affects only itself."""
    is_strict = source.mapping.is_strict
    table = regular.parse(_end_lines(block))
    if table is not None:
        batch = convert_table(source, rows.complete(_number_rows(table, block.first_line)))
        if not (is_strict and batch.rejects):  # rejects must quote the lines as written
            return batch
    decode = _read_own_object if is_strict else _get_decoder(source.mapping)
    values, rejects = _decode_lines(block.split_lines(), decode)
    found = _expand_lines(rows, values, rejects)
    table = rows.complete(_build_table([row for _, row in found]))
    places = [values[at][0] for at, _ in found]
    texts = [values[at][1] for at, _ in found] if is_strict else ()
    return convert_table(source, table._replace(places=places, texts=texts), rejects)


def _expand_lines(
    rows: "_Rows", values: Sequence[tuple[int, str, Any]], rejects: list[Reject]
) -> list[tuple[int, flatten.Row]]:
    """Return the rows of all values, each with the index of its line. Add rejects."""
    with suppress(FlattenError):
        return rows.expand([value for *_, value in values])
    found: list[tuple[int, flatten.Row]] = []
    for at, (line, text, value) in enumerate(values):
        try:
            found += ((at, row) for _, row in rows.expand([value]))
        except FlattenError as error:
            rejects.append(Reject(line, str(error), text))
    return found


def _end_lines(block: TextBlock) -> str:
    text = block.text.replace("\r\n", "\n") if "\r" in block.text else block.text
    return text.replace("\n", _END) + _END


def _number_rows(table: Table, first: int) -> Table:
    return table._replace(places=range(first, first + len(table.places)))


def _build_table(rows: Sequence[flatten.Row]) -> Table:
    names = [*dict.fromkeys(name for row in rows for name in row)]
    columns = [[row.get(name, "") for row in rows] for name in names]
    return Table(names, columns, range(1, len(rows) + 1))


class _Rows:
    """Turn values into rows with the columns that a mapping names."""

    def __init__(self, mapping: ColumnMapping, *, is_sample: bool = False) -> None:
        self._mapping = mapping
        self._is_sample = is_sample
        parts = (each for name in mapping.names for each in (name, *name.split("+")))
        self._wanted = [*dict.fromkeys(parts)]
        self._known: dict[str, None] = {}

    def expand(self, values: Sequence[Any]) -> list[tuple[int, flatten.Row]]:
        """Return the rows of values; see `flatten.expand`.

        Raises FlattenError if a value is nested too deeply, and the errors of `flatten.expand`.
        """
        try:
            return flatten.expand(values, self._mapping, None if self._is_sample else self._wanted)
        except RecursionError:
            raise FlattenError("nested too deeply") from None

    def build_tables(self, source: Source, items: Sequence[Any]) -> Iterator[Table]:
        """Build tables from the rows of items.

        Raises SourceError if an item can't be turned into rows.
        """
        for part in flatten.split(items, _ITEMS):
            try:
                rows = [row for _, row in self.expand(part)]
            except FlattenError as error:
                raise SourceError(f"{source.title}: {error}") from None
            for start in range(0, len(rows), _ROWS_PER_TABLE):
                yield _build_table(rows[start : start + _ROWS_PER_TABLE])

    def complete(self, table: Table) -> Table:
        """Add the wanted columns that earlier tables had, as empty columns.

        A table without rows gets all wanted columns.
        """
        known = self._known if table.places else self._wanted
        missing = [name for name in self._wanted if name in known and name not in table.names]
        self._known |= dict.fromkeys(table.names)
        columns = [*table.columns, *([""] * len(table.places) for _ in missing)]
        return table._replace(names=[*table.names, *missing], columns=columns)


def _decode_lines(
    lines: Iterable[tuple[int, str]], decode: Callable[[str], Any]
) -> tuple[list[tuple[int, str, Any]], list[Reject]]:
    """Return the values of lines, each with its line, and the rejects for malformed lines."""
    found: list[tuple[int, str, Any]] = []
    rejects: list[Reject] = []
    for line, written in lines:
        if text := written.removesuffix("\r"):
            try:
                found.append((line, text, decode(text)))
            except RowError as error:
                rejects.append(Reject(line, str(error), text, error.value))
    return found, rejects


def _read_own_object(text: str) -> flatten.Row:
    """Parse a row of our own form.

    Raises RowError if the row is malformed.
    """
    value = _decode(text, None)
    if not isinstance(value, dict) or value.keys() != set(STRICT.names):
        raise RowError(OTHER_KEYS)
    server_id, observed_at, players = (value[key] for key in STRICT.names)
    if type(server_id) is not str:
        raise RowError(f"serverId: {IDENTIFIER_RULE}", _format_value(server_id))
    if type(observed_at) not in (int, str):
        raise RowError("observedAt: must be an integer or a string", _format_value(observed_at))
    if type(players) is not int:
        raise RowError(f"players: {COUNT_RULE}, {AS_INTEGER}", _format_value(players))
    return dict(zip(STRICT.names, (server_id, str(observed_at), str(players)), strict=True))


def _decode(text: str, number: Callable[[str], str] | None) -> Any:
    try:
        return wire.decode_text(text, convert_number=number)
    except wire.JsonError as error:
        raise RowError(str(error)) from None


def _get_decoder(mapping: ColumnMapping) -> Callable[[str], Any]:
    """Return a function that decodes an object or array, or raises RowError."""

    def decode(text: str) -> Any:
        value = _decode(text, mapping.write_number)
        if not isinstance(value, dict | list):
            raise RowError("must be an object or an array")
        return value

    return decode


def _format_value(value: Any) -> str:
    """Return a string unchanged, and any other value as JSON."""
    return value if isinstance(value, str) else wire.quote_value(value)


_STRING = r'"([^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+)"'
_SCALAR = re.compile(rf"{_STRING}\s*+:|{_STRING}|(-?[0-9][-+.0-9eE]*+|null|true|false)")
"""Matches a key or a scalar."""
_INTEGER = "(0|[1-9][0-9]*+)"
_NUMBER = r"(?:(-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?)|null)"
_FLAG = "(?:(true|false)|null)"


class _Regular:
    """Extract scalars from consecutive values with the same structure."""

    def __init__(self, mapping: ColumnMapping) -> None:
        self._mapping = mapping
        self._names: Sequence[str] = ()
        self._pattern: re.Pattern[str] | None = None

    def parse(self, text: str) -> Table | None:
        """Return the values of a text as a table, or None if their structure differs.

        Each value must end with `_END`. A malformed escape counts as a difference.
        """
        columns = self._find(text)
        if columns is None:
            self._learn(text[: text.index(_END)])
            columns = self._find(text)
        return Table(self._names, columns, range(len(columns[0]))) if columns else None

    def _find(self, text: str) -> list[Sequence[str]] | None:
        if self._pattern is None:
            return None
        # Alternates between the text before a value, which must be empty, and its scalars.
        parts = self._pattern.split(text)
        step = 1 + len(self._names)
        if any(parts[::step]):
            return None
        columns = [parts[at::step] for at in range(1, step)]
        try:
            return [_decode_column(column, has_escapes="\\" in text) for column in columns]
        except RowError:
            return None

    def _learn(self, text: str) -> None:
        """Derive the expression from a value, if it is a row without nested tables."""
        self._pattern = None
        try:
            if self._mapping.is_strict:
                _read_own_object(text)
            row = flatten.find_row(_decode(text, self._mapping.write_number), self._mapping)
        except (RowError, FlattenError, RecursionError):
            return
        scalars = [match for match in _SCALAR.finditer(text) if match.lastindex != 1]
        values = _decode_column([match[2] or match[3] for match in scalars], has_escapes=True)
        values = ["" if value == "null" else value for value in values]
        if not row or [*row.values()] != values:
            return
        end = 0
        parts: list[str] = []
        for match in scalars:
            parts += re.escape(text[end : match.start()]), self._describe(match)
            end = match.end()
        self._names = [*row]
        self._pattern = re.compile("".join([*parts, re.escape(text[end:]), _END]))

    def _describe(self, match: re.Match[str]) -> str:
        """Return the expression for scalars like the matched one."""
        if match[2] is not None:
            return _STRING if self._mapping.is_strict else f"(?:{_STRING}|null)"
        if self._mapping.is_strict or self._mapping.thousands == ".":
            return _INTEGER
        return _FLAG if match[3] in ("true", "false") else _NUMBER


def _decode_column(values: Sequence[Any], *, has_escapes: bool) -> Sequence[str]:
    """Decode the escapes of strings; None becomes empty.

    Raises RowError if an escape is not valid JSON.
    """
    decoded: dict[Any, str] = {None: ""} if None in values else {}
    if has_escapes:
        decoded |= {each: _decode(f'"{each}"', None) for each in {*values} if "\\" in (each or "")}
    return [decoded.get(each, each) for each in values] if decoded else values


_MAX_CHARACTERS = 1 << 26
"""The maximum length of a document that is not an array, and of an array's item."""
_WHOLE_CHARACTERS = 1 << 23
_PREFIX_CHARACTERS = 1 << 20
"""A sample uses a whole document up to the first length, and this prefix of a longer one."""

_SCRIPT = re.compile(r"\s*(?:(?:(?:var|let|const)\s+)?[\w.$]+\s*=\s*|[\w.$]+\()?")
"""Matches the JavaScript before a document that is assigned to a variable or passed to a
function.
"""
_AFTER = re.compile(r"[\s;)]*")
_SPACE = re.compile(r"[ \t\n\r]*")
_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[\[\]{},]', re.DOTALL)
_SEPARATOR = re.compile(r"\s*(?:,\s*(?P<next>\S)|\]|(?P<wrong>[^\s,]))")
_CLOSING = {"[": "]", "{": "}"}
_FIRST_CHARACTERS = 5_000
_LONGEST_TOKEN = 100
_LONGEST_START = 200


class _Document:
    """Read a JSON document. Read an array in parts, to limit the memory used."""

    def __init__(self, source: Source, convert_number: Callable[[str], Any] | None = str) -> None:
        self._source = source
        self._regular = _Regular(source.mapping)
        self._decoder = wire.get_decoder(convert_number)
        self._chunks = source.read_text()
        self._text, self._at, self._count = "", 0, 0
        self._taken = 0  # the characters of the items in the current part
        self._separator = ","
        self._is_end = False

    def read(self) -> Iterator[Table | Sequence[Any]]:
        """Yield the items of the document; the items of an array in parts.

        Raises SourceError if the document can't be read or is not JSON.
        """
        self._start()
        if self._text[self._at : self._at + 1] == "[":
            self._at += 1
            yield from self._read_array()
        else:
            yield _find_items(self._read_values())
        while self._fill():
            pass
        if not _AFTER.fullmatch(self._text, self._at):
            raise self._build_error("goes on after the end of the document")

    def read_values(self) -> list[Any]:
        """Return the document and the documents that follow it.

        Raises SourceError if a document can't be read or is not JSON.
        """
        self._start()
        return self._read_values()

    def read_prefix(self, characters: int) -> tuple[list[Any], bool]:
        """Return the documents, or their beginning if the text is longer than `characters`.

        Also returns whether that is all.

        Raises SourceError if a document can't be read or is not JSON.
        """
        while len(self._text) <= characters and self._fill():
            pass
        is_whole = len(self._text) <= characters
        if not is_whole:
            self._text, self._chunks = _close(self._text[:_PREFIX_CHARACTERS]), iter(())
        return self.read_values(), is_whole

    def _start(self) -> None:
        while len(self._text) < _LONGEST_START and self._fill():
            pass
        self._at = ((match := _SCRIPT.match(self._text)) and match.end()) or 0

    def _read_values(self) -> list[Any]:
        """Return the remaining documents."""
        while self._fill():
            if len(self._text) > _MAX_CHARACTERS:
                raise SourceError(
                    f"{self._source.title}: longer than {_MAX_CHARACTERS:,} characters, and not an"
                    " array; convert it to NDJSON"
                )
        found = [self._take_value()]
        while not _AFTER.fullmatch(self._text, self._at):
            self._skip_space()
            found.append(self._take_value())
        return found

    def _read_array(self) -> Iterator[Table | Sequence[Any]]:
        """Yield the items of an array, in parts, after its opening bracket."""
        self._skip_space()
        if self._text.startswith("]", self._at):
            self._at += 1
            return
        items: list[Any] = []
        is_more, most = True, _FIRST_CHARACTERS
        while is_more:
            items.append(self._take_value())
            is_more = self._take_separator()
            if is_more and self._taken < most:
                continue
            yield items
            items, self._taken, most = [], 0, BLOCK_BYTES
            while is_more and (table := self._take_regular()):
                yield table

    def _take_value(self) -> Any:
        """Return the next value, reading more text until it is complete."""
        while True:
            least = 2 * (len(self._text) - self._at)
            try:
                value, end = self._decode()
                if end < len(self._text) or self._is_end:  # a number could continue
                    self._taken += end - self._at
                    self._at = end
                    self._count += 1
                    return value
            except JSONDecodeError as error:
                is_cut = error.pos > len(self._text) - _LONGEST_TOKEN
                is_cut = is_cut or error.msg.startswith("Unterminated string")
                if self._is_end or not is_cut:
                    reason = "cut off, or not JSON" if is_cut else "not JSON"
                    raise self._build_error(f"{reason}: {error.msg}", error.pos) from None
            if least > _MAX_CHARACTERS:
                raise self._build_error(f"longer than {_MAX_CHARACTERS:,} characters")
            while len(self._text) - self._at < least and self._fill():
                pass

    def _take_regular(self) -> Table | None:
        """Return the items that end within the text, if they differ only in their scalars."""
        if len(self._text) - self._at < BLOCK_BYTES:
            self._fill()
        separator = self._separator
        cut = self._text.rfind(separator, self._at)
        if cut <= self._at or separator[0] not in "]}" or separator[-1] not in "[{":
            return None
        text = self._text[self._at : cut + 1]
        ended = text.replace(separator, f"{separator[0]}{_END}{separator[-1]}") + _END
        table = self._regular.parse(ended)
        if table is not None:
            self._at = cut + len(separator) - 1
            self._count += len(table.places)
        return table

    def _take_separator(self) -> bool:
        """Consume the comma or bracket after an item, and return whether it is a comma."""
        last = self._text[self._at - 1]
        while (match := _SEPARATOR.match(self._text, self._at)) is None and self._fill():
            pass
        if match is None:
            raise self._build_error("cut off")
        if match["wrong"]:
            raise self._build_error(f"not JSON: {match['wrong']!r} after an item")
        self._separator = last + match[0]
        self._at = match.end() - bool(match["next"])
        return bool(match["next"])

    def _decode(self) -> tuple[Any, int]:
        """Return the next value and its end. The caller handles JSONDecodeError."""
        try:
            return self._decoder.raw_decode(self._text, self._at)
        except wire.JsonError as error:
            raise self._build_error(str(error)) from None
        except RecursionError:
            raise self._build_error("nested too deeply") from None

    def _skip_space(self) -> None:
        while _SPACE.fullmatch(self._text, self._at) is not None and self._fill():
            pass
        match = _SPACE.match(self._text, self._at)
        self._at = match.end() if match else self._at

    def _fill(self) -> bool:
        """Drop the consumed text and read more. Return whether there was more."""
        chunk = next(self._chunks, "")
        self._text, self._at = self._text[self._at :] + chunk, 0
        self._is_end = not chunk
        return not self._is_end

    def _build_error(self, reason: str, position: int | None = None) -> SourceError:
        """Return the error at a position in the text, or for the next item if it is unknown."""
        place = f", after row {self._count:,}" if self._count else ""
        if not self._count and position is not None:
            line = self._text.count("\n", 0, position) + 1
            column = position - self._text.rfind("\n", 0, position)
            place = f", line {line}, column {column}"
        return SourceError(f"{self._source.title}{place}: {reason}")


def _find_items(values: Sequence[Any]) -> list[Any]:
    return [item for value in values for item in flatten.find_items(value)]


def _close(text: str) -> str:
    """Turn the beginning of a document into a valid document by dropping its incomplete end."""
    brackets: list[str] = []
    end, closing = 0, ""
    for match in _STRUCTURE.finditer(text):
        if (sign := match[0]) in _CLOSING:
            brackets.append(_CLOSING[sign])
        elif sign in _CLOSING.values():
            del brackets[-1:]
        elif sign == ",":
            end, closing = match.start(), "".join(reversed(brackets))
    return text[:end] + closing
