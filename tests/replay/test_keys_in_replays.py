"""`srvstat replay` shows no keys, whatever part of a recording has them."""

import hashlib
import json
from pathlib import Path

from conftest import AS_OF, Build, Cli, server
from replay.recording_files import describe_exchange, write_har, write_ndjson
from srvstat.contract.instants import format_instant
from support.access import PLANS, format_key_table

NOW = format_instant(AS_OF)
COMPARE = "/gateway/v1/compare"
SERVER = "/gateway/v1/servers/a"
BODY = '{"servers":[{"identifier":"a","by":"id"},{"identifier":"b","by":"id"}]}'
KEYS = {
    place: f"{place}-secret-0123456789"
    for place in ("header", "cookie", "authorization", "registered", "parameter", "foreign")
}
GENERATED = "srvstat_" + "g" * 43
TARGETS = (
    *(f"/gateway/v1/servers/{key}" for key in (GENERATED, KEYS["header"], KEYS["registered"])),
    f"{SERVER}?by={KEYS['header']}&api_key={KEYS['parameter']}",
    f"{SERVER}?by=%73{GENERATED[1:]}",
    f"/login?access_token={KEYS['foreign']}",
    f"/gateway/v2/{KEYS['header']}",
    f"/{'a' * 990}/{KEYS['header']}",
    f"{SERVER}?{'?' * 10_000}",
)


def write_recordings_with_keys(directory: Path) -> list[str]:
    """Write recordings with keys in every part of a request and in answers; return their names."""
    headers = {
        "x-gateway-key": KEYS["header"],
        "cookie": f"session={KEYS['cookie']}",
        "authorization": f"Bearer {KEYS['authorization']}",
    }
    sent = " ".join((GENERATED, KEYS["header"], KEYS["registered"]))
    echo = json.dumps({"error": {sent: sent}, "list": [sent]})
    bodies = (sent, BODY.replace('"a"', f'"{GENERATED}"'), f'{{"{sent}":1}}', BODY)
    requests = [
        *((target, None, 200) for target in TARGETS),
        *((COMPARE, body, status) for status in (200, 400) for body in bodies),
    ]
    exchanges = [
        describe_exchange(target, echo, body=body, status=status, headers=headers, requestedAt=NOW)
        for target, body, status in requests
    ]
    commands = directory / "mail.txt"
    commands.write_text(
        "".join(
            f"curl '{each}' -H 'X-Gateway-Key: {KEYS['header']}' -b 'k={KEYS['cookie']}'"
            f" -H 'Authorization: Bearer {KEYS['authorization']}' -d '{sent}'\n"
            for each in TARGETS
        ),
        encoding="utf-8",
    )
    return [
        write_har(directory / "x.har", exchanges),
        write_ndjson(directory / "x.ndjson", exchanges),
        str(commands),
    ]


def test_no_key_is_shown(cli: Cli, build: Build, tmp_path: Path) -> None:
    snapshot = build([server("a"), server("b")], [("a", AS_OF, 3), ("b", AS_OF, 4)])
    access = tmp_path / "access.toml"
    digest = hashlib.sha256(KEYS["registered"].encode()).hexdigest()
    access.write_text(PLANS + format_key_table(digest), encoding="utf-8")
    names = write_recordings_with_keys(tmp_path)
    hidden = {GENERATED, GENERATED[1:], *KEYS.values()}
    for options, unknown in (
        (["--access", str(access)], set[str]()),
        (["--access", str(access), "--at", "search", "--table"], set[str]()),
        (["--json"], {KEYS["registered"]}),
        (["--table"], {KEYS["registered"]}),
    ):
        ran = cli("replay", *names, *options, "-s", snapshot)
        shown = ran.stdout.decode() + ran.stderr
        assert ran.exit_code == 5
        assert "\u2026" in shown
        assert {key for key in hidden if key in shown} == unknown


def test_no_key_is_in_the_reason_of_an_unreadable_line(
    build: Build, cli: Cli, tmp_path: Path
) -> None:
    snapshot = build([server("a")], [("a", AS_OF, 1)])
    key = KEYS["registered"]
    access = tmp_path / "access.toml"
    digest = hashlib.sha256(key.encode()).hexdigest()
    access.write_text(PLANS + format_key_table(digest), encoding="utf-8")
    lines = tmp_path / "x.ndjson"
    lines.write_text(f'{{"document":"{GENERATED}"}}\n{{"{key}":1,"{key}":2}}\n', encoding="utf-8")

    ran = cli("replay", str(lines), "--access", str(access), "-s", snapshot)

    assert [each["reason"] for each in ran.json["exchanges"]] == [
        'document: "…" is not one of recording',
        'the key "…" is repeated',
    ]
