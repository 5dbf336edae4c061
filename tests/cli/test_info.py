"""`snapshot info` and `snapshot verify`: which file they read, and how much they keep of it."""

import pytest

from conftest import AS_OF, Build, Cli, server


@pytest.mark.parametrize("command", ["info", "verify"])
@pytest.mark.parametrize("option", ["-s", "--snapshot"])
def test_the_snapshot_may_be_named_by_an_option(
    cli: Cli, build: Build, monkeypatch: pytest.MonkeyPatch, command: str, option: str
) -> None:
    path = build([server("a")], [("a", AS_OF, 1)])
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", "elsewhere.db")

    by_option = cli("snapshot", command, option, path)

    assert by_option.exit_code == 0
    assert by_option.stdout == cli("snapshot", command, path).stdout
    both = cli("snapshot", command, path, option, path)
    assert (both.exit_code, both.stdout) == (2, b"")
    assert both.stderr == "error: PATH and --snapshot exclude each other\n"
