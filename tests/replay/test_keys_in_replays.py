"""`srvstat replay` shows no keys, whatever part of a recording has them."""

import hashlib
import json
from pathlib import Path

from conftest import AS_OF, Build, Cli, server
from replay.recording_files import describe_exchange, write_har, write_ndjson
from srvstat.contract.time import format_instant
from support.records import PLANS, format_key_table

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


def test_of_a_foreign_request_only_host_and_path_are_shown(
    build: Build, cli: Cli, tmp_path: Path
) -> None:
    snapshot = build([server("a")], [("a", AS_OF, 1)])
    urls = {
        "https://me:hidden@maps.example:8443/tile?k=hidden#hidden": "maps.example:8443/tile",
        "http://[::1]/login?code=hidden&state=hidden": "[::1]/login",
        "https://api.example/gateway/v1/servers/a/x?by=hidden": "api.example"
        "/gateway/v1/servers/a/x",
        "https://cdn.example?hidden": "cdn.example/",
        "https://me:hidden/": "/",  # no valid port, so perhaps a password
        "https://me:hidden/hidden@maps.example/p?k=hidden": "/…@maps.example/p",
        "https://me:12/hidden@maps.example/p": "/…@maps.example/p",  # the port is a password, too
        "https://cdn.example/vue@3/x.js": "cdn.example/…@3/x.js",
        "//me:hidden@maps.example/p?k=hidden": "/…@maps.example/p",
        "wss://chat.example/live?token=hidden": "wss:",
    }
    unusual = {
        " https://me:hidden@maps.example/p": "/…@maps.example/p",  # which curl refuses
        "hidden@maps.example/p": "/…@maps.example/p",  # which curl reads
        "hidden:x@maps.example/p": "/…@maps.example/p",
    }
    urls_of_files = {**urls, **unusual}
    exchanges = [describe_exchange(url, "{}", requestedAt=NOW) for url in urls_of_files]
    exchanges.append(describe_exchange("/implicit#access_token=hidden", "{}", requestedAt=NOW))
    entries = [{"request": {"method": "GET", "url": url, "headers": []}} for url in urls_of_files]
    har = tmp_path / "x.har"
    har.write_text(json.dumps({"log": {"entries": entries}}), encoding="utf-8")
    preflight = "https://api.example/gateway/v1/compare?hidden"
    commands = tmp_path / "mail.txt"
    commands.write_text(
        "".join(f"curl '{url}'\n" for url in urls)
        + f"curl -u me:hidden -G -d key=hidden maps.example/tile\ncurl -X OPTIONS {preflight}\n"
        "curl hidden:x@maps.example/p\ncurl -X 'GET?key=hidden' maps.example/p\n",
        encoding="utf-8",
    )
    names = (write_ndjson(tmp_path / "x.ndjson", exchanges), str(har), str(commands))

    ran = cli("replay", *names, "--json", "-s", snapshot)

    exchanges = ran.json["exchanges"]
    assert {each["class"] for each in exchanges} == {"foreign"}
    assert [each["path"] for each in exchanges] == [
        *(*urls_of_files.values(), "/implicit"),
        *urls_of_files.values(),
        *(*urls.values(), "maps.example/tile", "api.example/gateway/v1/compare"),
        *("maps.example/p", "maps.example/p"),
    ]
    assert exchanges[-1]["method"] == "GET…"
    for options in (["--json"], ["--table"], ["--table", "--explain"], ["--at", "search"]):
        shown = cli("replay", *names, *options, "-s", snapshot)
        assert "hidden" not in shown.stdout.decode() + shown.stderr


def test_no_address_in_the_reason_of_an_unreadable_line_has_its_query(
    build: Build, cli: Cli, tmp_path: Path
) -> None:
    snapshot = build([server("a")], [("a", AS_OF, 1)])
    url = 'https://me:hidden@maps.example/tile?k="hidden#hidden'
    lines = tmp_path / "x.ndjson"
    lines.write_text(
        f"{json.dumps({'document': url})}\n"
        f"{{{json.dumps(url)}:1,{json.dumps(url)}:2}}\n"
        f"{json.dumps({'request': {'method': 'GET', 'path': '/', url: 1}})}\n",
        encoding="utf-8",
    )

    ran = cli("replay", str(lines), "-s", snapshot)

    assert [each["reason"] for each in ran.json["exchanges"]] == [
        'document: "https://maps.example/tile" is not one of recording',
        'the key "https://maps.example/tile" is repeated',
        'request["https://maps.example/tile"]: unknown property',
    ]


def test_a_pasted_command_shows_no_file(build: Build, cli: Cli, empty_directory: Path) -> None:
    snapshot = build([server("a")], [("a", AS_OF, 1)])
    Path("secret.txt").write_text("hidden", encoding="utf-8")
    mail = empty_directory / "mail.txt"
    url = f"https://api.example{SERVER}"
    mail.write_text(f"curl -G {url} --data-urlencode by@secret.txt\n", encoding="utf-8")

    ran = cli("replay", str(mail), "--json", "-s", snapshot)

    (exchange,) = ran.json["exchanges"]
    assert (ran.exit_code, exchange["class"], exchange["path"]) == (5, "unreadable", None)
    assert exchange["reason"] == (
        "--data-urlencode: files and standard input are not read; write the contents into the"
        " command"
    )
    assert "hidden" not in ran.stdout.decode() + ran.stderr
