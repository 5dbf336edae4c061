"""A directory for commands that are killed or fail: sources, and files before and after."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from srvstat.cli.app import main

START = 1_772_323_200_000
"""2026-03-01T00:00:00Z, the instant of the first observation."""

DRAFT = re.compile(r"\.(out(\.db)?|rejects\.ndjson)\.srvstat-[0-9a-f]{16}\.tmp")


class Setting(NamedTuple):
    """The start of a command: with or without old files, and the options of the command."""

    name: str
    is_old: bool
    options: tuple[str, ...]


SETTINGS = (
    Setting("over old files", is_old=True, options=("--overwrite",)),
    Setting("without old files", is_old=False, options=("--overwrite",)),
    Setting("without --overwrite", is_old=False, options=()),
)


UPDATE_SETTINGS = (Setting("update", is_old=True, options=()),)
BUNDLE_SETTINGS = SETTINGS[:2]
EXPORT_SETTINGS = (Setting("export", is_old=False, options=()),)


class Files(NamedTuple):
    """The two outputs of a command; None for a missing one. The files of a folder are joined."""

    snapshot: bytes | None
    rejects: bytes | None


NOTHING = Files(None, None)
OLD = Files(b"an old snapshot", b"old rejects\n")


class BuildDirectory:
    """A directory to build in, its sources, and the files that they produce."""

    output = "out.db"
    """The name of the snapshot, or of the folder that an export writes."""

    def __init__(self, root: str, observations: int) -> None:
        self._sources = Path(root, f"sources-{observations}")
        self._sources.mkdir()
        self.path = Path(root, f"builds-{observations}")
        self.path.mkdir()
        _write_sources(self._sources, observations)
        self.old = self._create_old_files()
        self.reset(is_old=True)
        # In this process, so that forks inherit everything that a first build loads.
        if main(self.build_last_command()):
            raise RuntimeError("the command without a fault failed")
        self.new = self.read_files()

    def _create_old_files(self) -> Files:
        """Return the files before the command."""
        return OLD

    def build_last_command(self) -> list[str]:
        """Return the arguments of a command that succeeds, whatever an earlier one left."""
        return self.build_command("--overwrite")

    def build_command(self, *options: str, into: Path | None = None) -> list[str]:
        """Return the arguments of a build with more options, into this or another directory."""
        directory = into or self.path
        output, rejects = directory / self.output, directory / "rejects.ndjson"
        servers, observations = self._sources / "servers.ndjson", self._sources / "observations.csv"
        written = ["snapshot", "build", str(output), "--rejects", str(rejects), "--quiet"]
        sources = ["--servers", str(servers), "--observations", str(observations)]
        return [*written, *sources, "--max-rejected", "100%", *options]

    def read_files(self) -> Files:
        """Read the two files."""
        return Files(self._read(self.output), self._read("rejects.ndjson"))

    def reset(self, *, is_old: bool) -> None:
        """Empty the directory; with `is_old`, write the old files."""
        shutil.rmtree(self.path)
        self.path.mkdir()
        if is_old:
            self.write_old_files()

    def write_old_files(self) -> None:
        """Write the files before the command; leftovers stay."""
        for name, data in zip((self.output, "rejects.ndjson"), self.old, strict=True):
            if data is not None:
                (self.path / name).write_bytes(data)

    def list_leftovers(self) -> set[str]:
        """Return the names of all other files in the directory."""
        return set(os.listdir(self.path)) - {self.output, "rejects.ndjson"}

    def check_files(self, before: Files) -> Iterator[str]:
        """Yield the problems with the files that a build left; a killed build may leave drafts."""
        after = self.read_files()
        for name, *allowed, now in zip(Files._fields, before, self.new, after, strict=True):
            if now not in allowed:
                yield f"{name} is neither the old nor the new one"
        if self.new.rejects == after.rejects is not None and after.snapshot != self.new.snapshot:
            yield "new rejects without the new snapshot"
        for name in self.list_leftovers():
            if not DRAFT.fullmatch(name):
                yield f"left: {name}"

    def _read(self, name: str) -> bytes | None:
        path = self.path / name
        if path.is_dir():
            return b"".join(one.read_bytes() for one in sorted(path.iterdir()))
        return path.read_bytes() if path.exists() else None


class UpdateDirectory(BuildDirectory):
    """A directory with a snapshot of most rows, which is updated with all of them."""

    def _create_old_files(self) -> Files:
        lines = (self._sources / "observations.csv").read_bytes().splitlines(keepends=True)
        earlier = self._sources / "earlier.csv"
        earlier.write_bytes(b"".join(lines[: len(lines) * 3 // 4]))
        command = super().build_command("--observations", str(earlier))
        command.remove(str(self._sources / "observations.csv"))
        command.remove("--observations")
        if main(command):
            raise RuntimeError("the build of the old snapshot failed")
        return Files(self.read_files().snapshot, OLD.rejects)

    def build_last_command(self) -> list[str]:
        """Return the arguments of an update of the old snapshot."""
        self.write_old_files()
        return self.build_command()

    def build_command(self, *options: str, into: Path | None = None) -> list[str]:
        """Return the arguments of an update with more options, in this or another directory."""
        _, _, *arguments = super().build_command(*options, into=into)
        return ["snapshot", "update", *arguments]


class BundleDirectory(BuildDirectory):
    """A directory for bundles of a snapshot that is elsewhere."""

    def _create_old_files(self) -> Files:
        self._parent = str(self._sources / "parent.db")
        if main([*super().build_command()[:2], self._parent, *super().build_command()[5:]]):
            raise RuntimeError("the build of the parent failed")
        return Files(OLD.snapshot, None)

    def build_command(self, *options: str, into: Path | None = None) -> list[str]:
        """Return the arguments of a bundle with more options, into this or another directory."""
        output = str((into or self.path) / self.output)
        return ["snapshot", "bundle", "a", "-o", output, "--snapshot", self._parent, *options]


class ExportDirectory(BundleDirectory):
    """A directory for exports, each of which is a new folder."""

    output = "out"

    def _create_old_files(self) -> Files:
        super()._create_old_files()
        return NOTHING

    def build_last_command(self) -> list[str]:
        """Return the arguments of an export; an earlier one is removed."""
        shutil.rmtree(self.path / self.output, ignore_errors=True)
        return self.build_command()

    def build_command(self, *options: str, into: Path | None = None) -> list[str]:
        """Return the arguments of an export with more options, into this or another directory."""
        output = str((into or self.path) / self.output)
        return ["snapshot", "export", "-o", output, "--snapshot", self._parent, *options]


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
