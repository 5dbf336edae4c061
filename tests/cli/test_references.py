"""How the command line reads identifiers and namespaces, and reports unknown servers."""

from pathlib import Path

import pytest

from conftest import AS_OF, Build, Cli, server

NOT_FOUND = b'{"error":{"code":"SERVER_NOT_FOUND","message":"Server not found"}}\n'


def test_an_identifier_with_a_leading_hyphen_needs_a_separator_or_its_namespace(
    cli: Cli, build: Build
) -> None:
    path = build([server("-a"), server("b")], [("-a", AS_OF, 1)])

    after_hyphens = cli("get", "--json", "--snapshot", path, "--", "-a")
    with_namespace = cli("get", "--json", "--snapshot", path, "id:-a")

    assert after_hyphens.exit_code == with_namespace.exit_code == 0
    assert after_hyphens.stdout == with_namespace.stdout
    assert after_hyphens.json["data"]["id"] == "-a"


@pytest.mark.usefixtures("crossed_snapshot")
def test_an_id_equal_to_the_cfx_id_of_another_server_is_not_confused(cli: Cli) -> None:
    assert cli("get", "a").json["data"]["id"] == "a"
    assert cli("get", "cfxId:a").json["data"]["id"] == "b"
    assert cli("get", "a", "--by", "cfxId").json["data"]["id"] == "b"
    both = cli("compare", "id:a", "cfxId:a").json["data"]
    assert [result["serverId"] for result in both] == ["a", "b"]


@pytest.mark.usefixtures("crossed_snapshot")
def test_a_server_requested_in_both_namespaces_is_answered_twice(cli: Cli) -> None:
    results = cli("compare", "a", "cfxId:x-a").json["data"]

    assert results[0] == results[1]


def test_unknown_and_unpublishable_servers_have_the_same_answer(
    cli: Cli, crossed_snapshot: str
) -> None:
    unknown = cli("get", "hidde-", "--json")
    hidden = cli("get", "hidden", "--json")

    assert unknown.exit_code == hidden.exit_code == 44
    assert unknown.stdout == hidden.stdout == NOT_FOUND
    assert cli("get", "cfxId:x-hidden").stdout == NOT_FOUND
    assert b"hidden" not in Path(crossed_snapshot).read_bytes()


@pytest.mark.usefixtures("crossed_snapshot")
def test_the_error_of_an_unknown_server_suggests_another(cli: Cli) -> None:
    other_namespace = cli("compare", "a", "x-a", "--json")
    near = cli("get", "X-b", "--by", "cfxId", "--table")

    assert (other_namespace.exit_code, other_namespace.stdout) == (44, NOT_FOUND)
    assert other_namespace.stderr == "servers[1]: no id x-a; did you mean cfxId:x-a?\n"
    assert (near.exit_code, near.stdout) == (44, b"")
    assert near.stderr == (
        "error: SERVER_NOT_FOUND: Server not found\nno cfxId X-b; similar: x-a\n"
    )
