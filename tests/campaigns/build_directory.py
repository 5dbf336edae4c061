"""Where builds run that are disturbed: their sources, what they find there, and what they leave."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from srvstat.cli.main import main

START = 1_772_323_200_000
"""2026-03-01T00:00:00Z, the instant of the first observation."""

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - for a directory of its own
"""A file system in memory, where there is one: what is tried here is no disk."""


DRAFT = re.compile(r"\.(out\.db|rejects\.ndjson)\.srvstat-[0-9a-f]{16}\.tmp")


class Setting(NamedTuple):
    """What a build finds: files from before or none, and whether it may replace them."""

    name: str
    is_old: bool
    options: tuple[str, ...]


SETTINGS = (
    Setting("over old files", is_old=True, options=("--overwrite",)),
    Setting("where nothing is", is_old=False, options=("--overwrite",)),
    Setting("without --overwrite", is_old=False, options=()),
)


class Files(NamedTuple):
    """The two files that a build writes, where they are there."""

    snapshot: bytes | None
    rejects: bytes | None


NOTHING = Files(None, None)
OLD = Files(b"an old snapshot", b"old rejects\n")


class BuildDirectory:
    """A directory to build in, and the files that its sources build."""

    def __init__(self, root: str, observations: int) -> None:
        self._sources = Path(root, f"sources-{observations}")
        self._sources.mkdir()
        self.directory = Path(root, f"builds-{observations}")
        self.directory.mkdir()
        _write_sources(self._sources, observations)
        # In this process: what the first build prepares, every fork of it finds ready.
        if main(self.command("--overwrite")):
            raise RuntimeError("no build succeeds here")
        self.new = self.files()

    def command(self, *options: str, into: Path | None = None) -> list[str]:
        """Return the arguments of a build with some more options, here or into another place."""
        directory = into or self.directory
        output, rejects = directory / "out.db", directory / "rejects.ndjson"
        servers, observations = self._sources / "servers.ndjson", self._sources / "observations.csv"
        written = ["snapshot", "build", str(output), "--rejects", str(rejects), "--quiet"]
        return [*written, "--servers", str(servers), "--observations", str(observations), *options]

    def files(self) -> Files:
        """Return the two files as they are now."""
        return Files(self._read("out.db"), self._read("rejects.ndjson"))

    def reset(self, *, is_old: bool) -> None:
        """Have the old files here, or none, and nothing else."""
        for name in os.listdir(self.directory):
            (self.directory / name).unlink()
        if is_old:
            for name, data in zip(("out.db", "rejects.ndjson"), OLD, strict=True):
                (self.directory / name).write_bytes(data or b"")

    def leftovers(self) -> set[str]:
        """Return the names of what else is here."""
        return set(os.listdir(self.directory)) - {"out.db", "rejects.ndjson"}

    def broken(self, before: Files) -> Iterator[str]:
        """Find what no build may leave, however it ended."""
        after = self.files()
        for name, *allowed, now in zip(Files._fields, before, self.new, after, strict=True):
            if now not in allowed:
                yield f"{name} is neither the old nor the new one"
        if after.rejects == self.new.rejects and after.snapshot != self.new.snapshot:
            yield "rejects of a snapshot that is not there"
        for name in self.leftovers():
            if not DRAFT.fullmatch(name):
                yield f"left: {name}"

    def _read(self, name: str) -> bytes | None:
        path = self.directory / name
        return path.read_bytes() if path.exists() else None


def _write_sources(directory: Path, observations: int) -> None:
    records = [
        {"id": name, "cfxId": f"x-{name}", "game": "game_a", "hostname": name}
        for name in ("a", "b")
    ]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (directory / "servers.ndjson").write_text(lines, encoding="utf-8")
    rows = [f"{'ab'[at % 2]},{START + at * 300_000},{at % 97}" for at in range(observations)]
    rows += [f"a,{at},{'none' * 50}" for at in range(50)]  # for which one write is too few
    text = "\n".join(["serverId,observedAt,players", *rows, ""])
    (directory / "observations.csv").write_text(text, encoding="utf-8")
