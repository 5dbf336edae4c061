"""`plot` writes one picture, as SVG or PNG."""

import struct
import sys
import zlib
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from conftest import Cli

KINDS = ("line", "heatmap", "distribution", "growth")


@pytest.fixture(autouse=True)
def _snapshot(two_servers: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a directory with a snapshot of the servers a and b."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SRVSTAT_SNAPSHOT", raising=False)
    Path("snapshot.db").write_bytes(two_servers)


def read_png(data: bytes) -> tuple[int, int, bytes]:
    """Return the width, the height and the bytes of the filtered lines of a PNG."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    at, compressed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        if kind == b"IDAT":
            compressed += data[at + 8 : at + 8 + length]
        at += length + 12
    width, height = struct.unpack(">II", data[16:24])
    return width, height, zlib.decompress(compressed)


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_is_one_svg_with_a_title_its_window_and_its_source(kind: str, cli: Cli) -> None:
    options = ["--kind", kind, "--range", "24h", "--tz", "Europe/Berlin"]
    ran = cli("plot", "a", "b", *options, "-o", "players.svg")

    assert (ran.exit_code, ran.stdout) == (0, b"")
    window = "after 2026-02-28 13:00:00, to 2026-03-01 13:00:00 inclusive (Europe/Berlin)"
    assert ran.stderr.startswith(f"wrote players.svg: 2 servers, {window}, ")
    written = Path("players.svg").read_bytes()
    assert written == cli("plot", "a", "b", *options, "-o", "-").stdout
    texts = [one.text or "" for one in ET.fromstring(written).iter() if one.tag.endswith("text")]  # noqa: S314 - our own output
    assert texts[0] == "Players of secret and b"
    assert "Feb 28, 2026, 13:00 to Mar 1, 2026, 13:00 · Europe/Berlin" in texts[1]
    assert texts[-1].startswith("srvstat · as of 2026-03-01 13:00 Europe/Berlin · root ")


def test_a_png_has_twice_the_pixels_and_the_theme_of_its_svg(cli: Cli) -> None:
    assert cli("plot", "a", "-o", "x.svg", "--width", "400").exit_code == 0
    for theme in ("light", "dark"):
        ran = cli("plot", "a", "-o", f"{theme}.png", "--width", "400", "--theme", theme)
        assert ran.exit_code == 0, ran.stderr

    width, height, lines = read_png(Path("light.png").read_bytes())
    size = ET.parse("x.svg").getroot()  # noqa: S314 - our own output
    assert (width, height) == (800, 2 * int(size.get("height", "")))
    assert len(set(lines)) > 50
    assert lines != read_png(Path("dark.png").read_bytes())[2]


def test_without_the_extra_a_png_is_refused_with_the_command_that_installs_it(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)

    ran = cli("plot", "a", "-o", "x.png")

    assert ran.exit_code == 2
    assert "run pip install 'srvstat[png]', or write an SVG" in ran.stderr
    assert cli("plot", "a", "-o", "x.svg").exit_code == 0
