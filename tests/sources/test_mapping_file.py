"""Mapping files: what is written is read again, and the place of what can't be read."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from srvstat.contract.errors import SourceError
from srvstat.sources.mapping import (
    COLUMNS,
    STRICT,
    ColumnMapping,
    MappingOptions,
    format_mapping_file,
    parse_columns,
    read_mapping_file,
)

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
COLUMN_NAMES = st.lists(NAMES, min_size=3, max_size=3, unique=True)
OPTIONS = st.builds(
    MappingOptions,
    from_=st.sampled_from([None, "csv"]),
    columns=st.builds(
        lambda names, keys: {
            key: name for key, name in zip(COLUMNS, names, strict=True) if key in keys
        },
        COLUMN_NAMES,
        st.sets(st.sampled_from(COLUMNS)),
    ),
    time_zone=st.sampled_from([None, "UTC", "Europe/Berlin"]),
    time_unit=st.sampled_from([None, "s", "ms"]),
    ids=st.sampled_from([None, "slug"]),
    game=st.sampled_from([None, "game_b"]),
)
WIDE_OPTIONS = st.builds(MappingOptions, wide=NAMES, time_zone=st.sampled_from([None, "UTC"]))


@given(options=OPTIONS | WIDE_OPTIONS)
@example(options=MappingOptions(wide='a "b" \x00\x7f\\'))
def test_a_written_file_is_read_as_it_was(
    options: MappingOptions, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "mapping.toml"
    path.write_bytes(format_mapping_file(options))

    assert read_mapping_file(str(path)) == options


@given(names=COLUMN_NAMES)
def test_columns_are_read_from_quoted_names(names: list[str]) -> None:
    quoted = ('"' + name.replace('"', '""') + '"' for name in names)
    text = ", ".join(f"{key}={name}" for key, name in zip(COLUMNS, quoted, strict=True))

    assert list(parse_columns(text).values()) == names


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("at=date", {"at": "date"}),
        ("id = Server Name , at=a=b", {"id": "Server Name", "at": "a=b"}),
        ('id="a,b",players="""n"""', {"id": "a,b", "players": '"n"'}),
    ],
)
def test_columns_are_keys_and_names(text: str, columns: dict[str, str]) -> None:
    assert parse_columns(text) == columns


@pytest.mark.parametrize("text", ["date", "id=a,", "id=a,,at=b", 'id="a"b', 'id="a', "id=a,id=b"])
def test_other_columns_are_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"can't be read from|is given twice"):
        parse_columns(text)


def test_the_first_options_win() -> None:
    saved = MappingOptions(columns={"id": "a", "at": "b"}, time_zone="UTC", game="game_a")

    merged = MappingOptions(columns={"at": "c"}, game="game_b").merge(saved)

    assert merged == MappingOptions(columns={"id": "a", "at": "c"}, time_zone="UTC", game="game_b")
    assert merged.build_mapping() == ColumnMapping(id="a", at="c", time_zone="UTC")
    wide = MappingOptions(wide="date").merge(saved)
    assert wide == MappingOptions(wide="date", time_zone="UTC", game="game_a")
    assert wide.build_mapping() == ColumnMapping(at="date", is_wide=True, time_zone="UTC")
    assert MappingOptions(columns={"id": "z"}).merge(wide).wide is None


def test_options_without_a_mapping_are_strict() -> None:
    assert MappingOptions(from_="csv", ids="slug", game="game_a").build_mapping() is STRICT
    assert not MappingOptions(columns={"id": "serverId"}).build_mapping().is_strict


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('ids = "slug"\n[columns]\nid = 5\n', "line 2: columns: id: must be the name of a column"),
        ('columns.name = "a"', 'line 1: columns: "name" is not one of id, at, players'),
        ('columns.id = "a"\ncolumns.at = "a"', "line 1: columns: two fields can't have the same"),
        ("columns = 5", "line 1: columns: must be a table with some of the keys"),
        ('wide = { id = "a" }', "line 1: wide: takes at=NAME only"),
        ('\nwide.at = "a"\ncolumns.at = "b"', "line 2: wide: can't be combined with columns"),
        ('time-zone = "Mars"', 'line 1: time-zone: no time zone "Mars"; use UTC or a name'),
        ("time-zone = 1", "line 1: time-zone: must be the name of a time zone"),
        ('time-unit = "us"', 'line 1: time-unit: "us" is not one of s, ms'),
        ("game = []", "line 1: game: [] is not one of game_a, game_b"),
        ('ids = "slug"\nzone = "UTC"', "line 2: zone: unknown; the options are from, columns,"),
        ("ids = slug", "line 1: not TOML at column 7: Invalid value"),
        ("\xff", "not UTF-8"),
        ("#" * 70_000, "longer than 65,536 bytes"),
    ],
)
def test_a_file_that_is_not_a_mapping_is_refused_with_its_line(
    text: str, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "mapping.toml"
    path.write_bytes(text.encode("latin-1"))

    with pytest.raises(SourceError) as caught:
        read_mapping_file(str(path))

    assert caught.value.reason.removeprefix(str(path))[2:].startswith(reason)
