"""Compare the results of an engine with the answers of `compare` on a snapshot."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from conftest import Cli, Ran
from fleet.random_fleet import FleetFiles
from srvstat.contract.requests import MAX_SERVERS
from support.snapshots import parse_summary


def check_same_bytes(
    cli: Cli, files: FleetFiles, directory: Path, range: str, *options: str
) -> None:
    """Build a snapshot and run `fleet` from the same files, and compare every result."""
    built = build(cli, files, directory)
    output = directory / "results.ndjson"
    ran = cli(
        "fleet", *map(str, files.sources), f"--servers={files.servers}", *files.options,
        f"--range={range}", f"--output={output}", "--overwrite", *options,
    )  # fmt: skip
    assert ran.exit_code == 0, ran.stderr

    check_results(cli, directory, output, range)
    assert len(output.read_bytes().splitlines()) == int(parse_summary(built)["servers"].split()[0])
    _check_counts(ran, built, directory / "rejects.ndjson")


def check_results(cli: Cli, directory: Path, output: Path, range: str) -> None:
    """Compare each line of a file with the answer of the snapshot in a directory."""
    lines = output.read_bytes().splitlines()
    assert lines == sorted(lines, key=_get_id)
    answers = _compare(cli, directory / "snapshot.db", lines, range)
    for joined, answer in zip(_join(lines, range), answers, strict=True):
        assert joined == answer, (joined, answer)


def build(cli: Cli, files: FleetFiles, directory: Path) -> Ran:
    """Build the snapshot of a fleet in a directory."""
    path = directory / "snapshot.db"
    ran = cli(
        "snapshot", "build", str(path), f"--servers={files.servers}", *files.options,
        *(f"--observations={source}" for source in files.sources),
        f"--rejects={directory}/rejects.ndjson", "--overwrite",
    )  # fmt: skip
    assert ran.exit_code == 0, ran.stderr
    return ran


def _get_id(line: bytes) -> str:
    server_id: str = json.loads(line)["serverId"]
    return server_id


def _split(lines: list[bytes]) -> Iterable[list[bytes]]:
    """Return parts of the size of a request; `compare` needs two servers at least."""
    starts = [*range(0, len(lines) - MAX_SERVERS, MAX_SERVERS), len(lines) - MAX_SERVERS]
    return (lines[start : start + MAX_SERVERS] for start in starts)


def _join(lines: list[bytes], range: str) -> list[bytes]:
    """Return the answers that have the results of a fleet."""
    head = b'{"range":"%s","data":[' % range.encode()
    return [head + b",".join(part) + b"]}" for part in _split(lines)]


def _compare(cli: Cli, snapshot: Path, lines: list[bytes], range: str) -> list[bytes]:
    requests = [
        {"servers": [{"identifier": _get_id(line), "by": "id"} for line in part], "range": range}
        for part in _split(lines)
    ]
    text = "".join(f"{json.dumps(request)}\n" for request in requests)
    ran = cli("compare", "--batch=-", f"--snapshot={snapshot}", stdin=text.encode())
    assert ran.exit_code == 0, ran.stderr
    return ran.stdout.splitlines()


def _check_counts(ran: Ran, build: Ran, rejects: Path) -> None:
    """Check that all rows met the fate that they have in a build, or are before the window."""
    found, built = parse_summary(ran), parse_summary(build)
    lines = rejects.read_bytes().splitlines()
    reasons = Counter(json.loads(line)["reason"] for line in lines)
    malformed = {why: rows for why, rows in reasons.items() if "an earlier row" not in why}
    assert _find_reasons(ran.stderr) == malformed, (ran.stderr, malformed)
    assert int(found["rejected"]) == sum(malformed.values())
    skipped = _parse(found["skipped"])
    early = skipped.pop("before the window", 0)
    assert skipped == _parse(built["skipped"]), (skipped, built)
    rows = ("kept", "repeated", "conflicting")
    assert early + _add(found, rows) == _add(built, rows)
    if not early:
        assert [found[name] for name in rows] == [built[name] for name in rows], (found, built)
    assert found["read"].split(" in ")[0] == built["read"].split(" in ")[0]
    assert found["servers"] == built["servers"]


def _find_reasons(summary: str) -> dict[str, int]:
    lines = re.findall(r"^ {15}([\d,]+) (.*)$", summary, re.MULTILINE)
    return {why: int(rows.replace(",", "")) for rows, why in lines}


def _parse(text: str) -> dict[str, int]:
    _, _, reasons = text.removesuffix(")").partition(" (")
    parts = (part.partition(" ") for part in reasons.split(", ") if part)
    return {why: int(rows.replace(",", "")) for rows, _, why in parts}


def _add(counts: Mapping[str, str], names: Iterable[str]) -> int:
    return sum(int(counts[name].replace(",", "")) for name in names)
