"""An output whose ending names another format is refused before any work."""

from pathlib import Path

import pytest

from conftest import AS_OF, Cli

HTML, JSON, DB = ".html or .htm", ".json", ".db or .sqlite or .sqlite3"

REFUSED = [
    (("report", "a", "-o", "x.pdf"), f"x.pdf: .pdf is another format; end the name in {HTML}"),
    (("report", "a", "-o", "x.SVG"), f"x.SVG: .svg is another format; end the name in {HTML}"),
    *(
        (
            ("report", "a", "-o", f"x{end}"),
            f"x{end}: {end} is another format; end the name in {HTML}",
        )
        for end in (".txt", ".zst", ".7z")
    ),
    (("fleet", "y.csv", "--snapshots", "x.db"), "x.db: .db is another format; name a folder"),
    (
        ("report", "a", "--json", "-o", "x.html"),
        f"x.html: .html is another format; end the name in {JSON}",
    ),
    (("plot", "a", "-o", "x.html"), "x.html: not a picture; the name must end with .svg or .png"),
    (("snapshot", "export", "-o", "x.csv"), "x.csv: .csv is another format; name a folder"),
    (
        ("snapshot", "bundle", "a", "-o", "x.json"),
        f"x.json: .json is another format; end the name in {DB}",
    ),
    (
        ("snapshot", "build", "x.csv", "--observations", "x.csv"),
        f"x.csv: .csv is another format; end the name in {DB}",
    ),
    (
        ("snapshot", "build", "x.db", "--observations", "y.csv", "--rejects", "r.csv"),
        "r.csv: .csv is another format; end the name in .ndjson or .jsonl",
    ),
    (
        ("snapshot", "update", "x.db", "--observations", "y.csv", "--rejects", "r.json"),
        "r.json: .json is another format; end the name in .ndjson or .jsonl",
    ),
    (
        ("snapshot", "build", "x.db", "--observations", "y.csv", "--save-mapping", "m.json"),
        "m.json: .json is another format; end the name in .toml",
    ),
    (
        ("fleet", "y.csv", "-o", "x.csv"),
        "-o x.csv: unknown format; end the name in .ndjson, .jsonl, .parquet",
    ),
]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("command", "message"), REFUSED)
def test_another_format_is_refused(command: tuple[str, ...], message: str, cli: Cli) -> None:
    Path("y.csv").write_text("serverId,observedAt,players\n")
    before = {*Path().iterdir()}

    ran = cli(*command)

    assert (ran.exit_code, ran.stdout, ran.stderr) == (2, b"", f"error: {message}\n")
    assert {*Path().iterdir()} == before


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", ["players", "players.page", "x.HTML", "x.2026"])
def test_any_other_ending_is_accepted(name: str, cli: Cli) -> None:
    rows = "".join(f"a,{AS_OF - hour * 3_600_000},5\n" for hour in range(100))
    Path("week.csv").write_text(f"serverId,observedAt,players\n{rows}")
    build = ("snapshot", "build", "snapshot", "--game", "game_a", "--observations", "week.csv")
    assert cli(*build).exit_code == 0

    assert cli("report", "a", "-o", name, "--snapshot", "snapshot").exit_code == 0
    assert Path(name).read_bytes().startswith(b"<!DOCTYPE html>")
