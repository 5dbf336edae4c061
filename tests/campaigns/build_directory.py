"""A directory for builds that are killed or fail: sources, the files before, the files after."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from srvstat.cli.main import main

START = 1_772_323_200_000
"""2026-03-01T00:00:00Z, the instant of the first observation."""

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - only as a parent of temporary directories
"""A file system in memory, if there is one: campaigns do not test the disk."""

DRAFT = re.compile(r"\.(out\.db|rejects\.ndjson)\.srvstat-[0-9a-f]{16}\.tmp")


class Setting(NamedTuple):
    """The start of a build: with or without old files, and the options of the build."""

    name: str
    is_old: bool
    options: tuple[str, ...]


SETTINGS = (
    Setting("over old files", is_old=True, options=("--overwrite",)),
    Setting("without old files", is_old=False, options=("--overwrite",)),
    Setting("without --overwrite", is_old=False, options=()),
)


class Files(NamedTuple):
    """The two files that a build writes; None for a missing file."""

    snapshot: bytes | None
    rejects: bytes | None


NOTHING = Files(None, None)
OLD = Files(b"an old snapshot", b"old rejects\n")


class BuildDirectory:
    """A directory to build in, its sources, and the files that they produce."""

    def __init__(self, root: str, observations: int) -> None:
        self._sources = Path(root, f"sources-{observations}")
        self._sources.mkdir()
        self.path = Path(root, f"builds-{observations}")
        self.path.mkdir()
        _write_sources(self._sources, observations)
        # In this process, so that forks inherit everything that a first build loads.
        if main(self.build_command("--overwrite")):
            raise RuntimeError("the build without a fault failed")
        self.new = self.read_files()

    def build_command(self, *options: str, into: Path | None = None) -> list[str]:
        """Return the arguments of a build with more options, into this or another directory."""
        directory = into or self.path
        output, rejects = directory / "out.db", directory / "rejects.ndjson"
        servers, observations = self._sources / "servers.ndjson", self._sources / "observations.csv"
        written = ["snapshot", "build", str(output), "--rejects", str(rejects), "--quiet"]
        return [*written, "--servers", str(servers), "--observations", str(observations), *options]

    def read_files(self) -> Files:
        """Read the two files."""
        return Files(self._read("out.db"), self._read("rejects.ndjson"))

    def reset(self, *, is_old: bool) -> None:
        """Empty the directory; with `is_old`, write the old files."""
        for name in os.listdir(self.path):
            (self.path / name).unlink()
        if is_old:
            for name, data in zip(("out.db", "rejects.ndjson"), OLD, strict=True):
                (self.path / name).write_bytes(data or b"")

    def list_leftovers(self) -> set[str]:
        """Return the names of all other files in the directory."""
        return set(os.listdir(self.path)) - {"out.db", "rejects.ndjson"}

    def check_files(self, before: Files) -> Iterator[str]:
        """Yield the problems with the files that a build left; a killed build may leave drafts."""
        after = self.read_files()
        for name, *allowed, now in zip(Files._fields, before, self.new, after, strict=True):
            if now not in allowed:
                yield f"{name} is neither the old nor the new one"
        if after.rejects == self.new.rejects and after.snapshot != self.new.snapshot:
            yield "new rejects without the new snapshot"
        for name in self.list_leftovers():
            if not DRAFT.fullmatch(name):
                yield f"left: {name}"

    def _read(self, name: str) -> bytes | None:
        path = self.path / name
        return path.read_bytes() if path.exists() else None


def _write_sources(directory: Path, observations: int) -> None:
    records = [
        {"id": name, "cfxId": f"x-{name}", "game": "game_a", "hostname": name}
        for name in ("a", "b")
    ]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (directory / "servers.ndjson").write_text(lines, encoding="utf-8")
    rows = [f"{'ab'[at % 2]},{START + at * 300_000},{at % 97}" for at in range(observations)]
    rows += [f"a,{at},{'none' * 50}" for at in range(50)]  # more than one write holds
    text = "\n".join(["serverId,observedAt,players", *rows, ""])
    (directory / "observations.csv").write_text(text, encoding="utf-8")
