"""One word, one meaning: former names of options, and what a mistake is answered with."""

import ast
import re
import shlex
import warnings
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import srvstat
from conftest import ROOT, Cli
from srvstat.cli.app import GROUPS, Group

MISTAKES = {
    "stats --nope": "error: no option --nope\nsee srvstat stats --help\n",
    "stats harbor-city --rang 7d": "error: no option --rang; did you mean --range?\n",
    "get harbor-city --range 7d": "error: no option --range; srvstat stats has --range\n",
    "top --last 7d": "did you mean --range LENGTH?",
    "history harbor-city --csv": "did you mean --format csv?",
    "compare a b --csv": "error: no option --csv; srvstat stats has --format csv\n",
    "compare a b --from 2026-02-01": "srvstat stats has --from\n",
    "snapshot info --format csv": "error: no option --format\n",
    "--json compare a b": "error: no option --json; options follow the command: srvstat"
    " compare --json\nsee srvstat --help\n",
    "--verison": "error: no option --verison; did you mean --version?\n",
    "snapshot --hepl": "error: no option --hepl; did you mean --help?\n",
    "--version=1": "error: --version takes no value\nsee srvstat --help\n",
    "stats harbor-city --json=1": "error: --json takes no value\nsee srvstat stats --help\n",
    "stats harbor-city --range": "error: --range needs a value, such as 7d\nsee srvstat stats --h",
    "compare a b --at": "error: --at needs a value, such as 2026-02-01T12:00Z\n",
    "stats a --at": "error: --at needs a value: --at TIME\n",
    "top --tag": "error: --tag needs a value: --tag TAG\n",
    "top -n": "error: -n needs a value: -n N\n",
    "serve --port": "error: --port needs a value: --port PORT\n",
    "--json": "options follow the command: srvstat COMMAND --json\n",
    "get harbor-city b": 'error: unexpected argument "b"; get takes one server; use srvstat'
    " compare harbor-city b\n",
    "openapi x y": 'error: unexpected argument "x" "y"\n',
    "replay": "error: RECORDING is required\nsee srvstat replay --help\n",
    "top -n 0": "error: --limit: must be at least 1\n",
    "stats a --above x": "error: --above: must be a whole number\n",
    "serve --port 99999": "error: --port: must be from 0 to 65535\n",
    "snapshot bundle a": "error: --output PATH is required\n",
    "top --rank-by best": 'error: --rank-by: "best" is not one of average, share, occupancy, ',
    "stats a --range 7": 'error: --range: "7" is not a duration; use a value such as 12h, 3d, 2w, ',
    "growth a --after x": 'error: --after: "x" is not a time; write a date such as 2026-02-01, or ',
    "snapshot build rows.csv": "error: rows.csv: the output must end in .db, .sqlite or .sqlite3;"
    " did you forget OUTPUT?\n",
    "snapshot export -o a.csv": "error: a.csv: the output is a folder; give a name without .csv\n",
    "plot a -o a.jpg": "error: a.jpg: unsupported picture format; use .svg or .png\n",
    "chart": "did you mean srvstat plot, or add --chart to compare or history?\n",
    "stat a": 'error: no command "stat"; did you mean srvstat stats?\n',
    "verify": 'error: no command "verify"; did you mean srvstat snapshot verify?\n',
    "snapshot buld x.db": 'error: no command "buld"; did you mean srvstat snapshot build?\n'
    "see srvstat snapshot --help\n",
    "frobnicate": 'error: no command "frobnicate"\nsee srvstat --help\n',
    "compare harbor-city": "; for one server: srvstat stats harbor-city --range 30d\n",
    "compare 'a b' --range 7d": "; for one server: srvstat stats IDENTIFIER --range 7d\n",
    "compare a,b": "; separate identifiers by spaces: a b\n",
    "stats a,id:b": "; separate identifiers by spaces: a id:b\n",
    "compare cfxid:hc4x2k new-frontier": "; did you mean cfxId:hc4x2k?\n",
    "compare 'Harbor City Roleplay' a": '; did you mean id:harbor-city ("Harbor City Roleplay")?\n',
    "compare a b --range 14d": "; srvstat stats takes any window, such as --range 14d\n",
    "compare a b --range 7": "; did you mean 7d?\n",
    "stats harbor-city --tz Berlin": "did you mean Europe/Berlin?\n",
    "growth harbor-city --by hour": "is not one of id, cfxId; did you mean --step?\n",
    "today --at 2026-03-01": "no option --at; today always reports the end of the snapshot\n",
    "get harbor-city --at 2026-02-30": '--at: "2026-02-30" is not a valid date\n',
    "compare a b --range week": '"week" is not one of 24h, 7d, 30d, 90d, 1y\n',
    "get nobody": "no server with id nobody; srvstat servers lists all ids of /",
    "growth": "no server given; name one, or add --all or a filter such as --text; the snapshot ",
    "get --snapshot missing.db": "no server given; srvstat servers lists them\n",
    "get harbor-city --at 2026-03-01": '"2026-03-01" has no time of day; write 2026-03-01T00:00Z\n',
    "get harbor-city --at yesterday": '"yesterday" is not a time; use the form 2026-02-01',
    "get harbor-city --at 2020-01-01T00:00Z": "warning: --at is before the first observation,"
    " 2025-12-16",
    "history a --step fortnight": '"fortnight" is not supported; use minutes or hours that ',
    "plot harbor-city -o absent/x.svg": "absent/x.svg: the folder does not exist; create it first",
    "plot harbor-city": "error: no output; add -o FILE.svg or -o FILE.png\n",
    "report harbor-city -o x.pdf": "error: x.pdf: the output must end in .html or .htm\n",
    "schema compare": "; for API schemas, run srvstat openapi\n",
    "access check --access absent.toml": "no such file; `srvstat demo` writes an example\n",
    "serve --fail 20": '--fail: "20" is not a share from 0% to 100%, such as 20%\n',
    "serve --delay 5": '--delay: "5" is not a time with a unit, such as 200ms, 1.5s or 50ms..2s\n',
}


@pytest.mark.parametrize(("mistake", "message"), MISTAKES.items(), ids=MISTAKES)
def test_a_mistake_is_answered_with_what_to_write(
    cli: Cli, mistake: str, message: str, demo_snapshot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", demo_snapshot)

    ran = cli(*shlex.split(mistake))

    assert message in ran.stderr
    assert ran.exit_code != 1


@pytest.mark.parametrize("clock", ["12:00", "06:00:29", "06:00:29.999"])
@pytest.mark.parametrize("command", ["get harbor-city --at", "stats harbor-city --to"])
def test_a_time_can_be_copied_from_the_output(
    cli: Cli, command: str, clock: str, demo_snapshot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", demo_snapshot)

    shown, written = (
        cli(*command.split(), time) for time in (f"2026-02-28 {clock} UTC", f"2026-02-28T{clock}Z")
    )

    assert (shown.exit_code, shown.stdout) == (0, written.stdout)
    refused = cli(*command.split(), "2026-02-28 UTC")
    assert (refused.exit_code, "is not a time" in refused.stderr) == (2, True)


RENAMED = [
    ("top --by peak -n 2", "top --rank-by peak -n 2"),
    ("peak-hours harbor-city --by hour", "peak-hours harbor-city --group-by hour"),
    ("stats harbor-city --at 2026-02-01", "stats harbor-city --to 2026-02-01"),
    ("history harbor-city --step hour", "history harbor-city --step 1h"),
    ("plot a --source X -o -", "plot a --caption X -o -"),
    ("replay - --id x", "replay - --request-id x"),
    ("stats harbor-city --format json", "stats harbor-city --json"),
    ("snapshot draft-servers - --format csv", "snapshot draft-servers - --input-format csv"),
    ("snapshot draft-servers ROWS --ids slug", "snapshot draft-servers ROWS --slug-ids"),
    (
        "snapshot draft-servers ROWS --from sqlite --table a",
        "snapshot draft-servers ROWS --source sqlite --input-table a",
    ),
    (
        "snapshot build /dev/null/x.db ROWS --as-of 2026-03-01T12:00Z",
        "snapshot build /dev/null/x.db ROWS --at 2026-03-01T12:00Z",
    ),
]


@pytest.mark.parametrize(("former", "present"), RENAMED)
def test_a_former_name_does_the_same_and_is_not_shown(
    cli: Cli, former: str, present: str, demo_snapshot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", demo_snapshot)

    def run(command: str) -> object:
        rows = demo_snapshot.replace("snapshot.db", "observations.csv")
        return cli(*command.replace("ROWS", rows).split(), stdin=b"")

    assert former != present
    assert run(former) == run(present)
    assert "no such option" not in cli(*former.split(), stdin=b"").stderr


def test_only_servers_are_named_by_a_namespace(cli: Cli) -> None:
    for group in GROUPS.values():
        for name, entry in group.items():
            inner = entry.commands if isinstance(entry, Group) else [""]
            for command in inner:
                shown = " ".join(cli(name, *command.split(), "--help").stdout.decode().split())
                assert shown.count("--by ") == shown.count("--by id|cfxId ")
                assert shown.count("--from ") == shown.count("--from TIME ")
                assert not re.search("--(as-of|ids|format csv.ndjson) ", shown)


def test_python_accepts_former_names_until_2_0(demo_snapshot: str) -> None:
    with srvstat.open_snapshot(demo_snapshot) as snapshot:
        for old, new in (
            (lambda: snapshot.top(by="peak"), lambda: snapshot.top(rank_by="peak")),
            (lambda: snapshot.peak_hours(by="hour"), lambda: snapshot.peak_hours(group_by="hour")),
            (lambda: snapshot.timeline(most_steps=9), lambda: snapshot.timeline(max_steps=9)),
            (lambda: snapshot.distribution(most_bins=9), lambda: snapshot.distribution(max_bins=9)),
            (
                lambda: snapshot.plot(["harbor-city"], source="X").to_svg(),
                lambda: snapshot.plot(["harbor-city"], caption="X").to_svg(),
            ),
        ):
            with pytest.warns(DeprecationWarning, match="srvstat 2.0 removes ") as warned:
                former = old()
            assert warned[0].filename == __file__
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert former == new()


def test_former_names_of_a_build_count_like_the_present_ones(tmp_path: Path) -> None:
    path, at = tmp_path / "a.db", "2026-03-02T00:00Z"
    polls = {"serverId": ["a"], "observedAt": ["2026-03-01T12:00Z"], "players": [4]}
    with pytest.warns(DeprecationWarning, match="as_of: is now at;") as warned:
        srvstat.build(pa.table(polls), path, at=None, as_of=at)
    with srvstat.open_snapshot(path) as snapshot:
        assert snapshot.as_of == "2026-03-02T00:00:00.000Z"
        with pytest.warns(DeprecationWarning, match="as_of: is now at;") as warned_again:
            snapshot.update(pa.table(polls), as_of=at)
        with pytest.raises(TypeError, match="'source'"):
            snapshot.report(["a"], source="X")  # type: ignore[call-arg]  # never had that name
    assert {one.filename for one in (*warned, *warned_again)} == {__file__}


PAGES = [
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
]


def read_words() -> list[re.Pattern[str]]:
    """Return the words of the table in CONTRIBUTING.md that are not to be used."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("| instead of | write |")[2].partition("\n\n")[0]
    cells = re.findall(r"^\| (.+?) \|", table.partition("\n|---|---|\n")[2], re.MULTILINE)
    return [
        re.compile(rf"\b{re.escape(one)}s?\b", re.IGNORECASE)
        for cell in cells
        for one in cell.split(", ")
    ]


def iter_texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the texts for people in a module, with their lines: all with spaces, without notes."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    notes = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if "Example: " not in str(node.value.value)  # the help of a command
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in notes:
            yield node.lineno, re.sub("`.*?`", "", node.value) if " " in node.value else ""


def test_no_message_or_help_has_a_word_to_avoid() -> None:
    words = read_words()
    found = [
        f"{path.relative_to(ROOT)}:{line}: {word.pattern}"
        for path in (ROOT / "src").rglob("*.py")
        for line, text in iter_texts(path)
        for word in words
        if word.search(text)
    ]

    assert len(words) > 10
    assert found == []


@pytest.mark.parametrize("page", PAGES)
def test_no_page_has_a_word_to_avoid(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    shown = re.sub(r"```.*?```|`.*?`", "", text, flags=re.DOTALL)

    assert not [one for one in read_words() if one.search(shown)]
