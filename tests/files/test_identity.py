"""Distinguish a file from its replacement."""

from pathlib import Path

from srvstat.files.identity import identify_file


def test_a_file_and_its_replacement_have_different_identities(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.db"
    assert identify_file(str(path)) is None
    path.write_bytes(b"one")
    first = identify_file(str(path))
    assert first == identify_file(str(path))

    (tmp_path / "next").write_bytes(b"two")
    (tmp_path / "next").replace(path)

    assert identify_file(str(path)) not in (None, first)
