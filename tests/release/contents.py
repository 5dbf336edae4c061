"""Check what the archives of a release contain."""

import re
import tarfile
import zipfile
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from email import message_from_bytes
from pathlib import Path, PurePosixPath

from release.builds import Archives
from release.project import ReleaseError, list_release_files, read_project, read_version

_METADATA = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")


def check_contents(archives: Archives) -> None:
    """Check that both archives contain all that they must, and nothing else.

    Raises ReleaseError.
    """
    version, sources = read_version(), list_release_files()
    with tarfile.open(archives.sdist) as sdist:
        found = {member.name.partition("/")[2] for member in sdist if not member.isdir()}
    expected = {name for name in sources if not name.startswith(".")} | {".gitignore", "PKG-INFO"}
    _compare(archives.sdist, found, expected)
    with zipfile.ZipFile(archives.wheel) as wheel:
        _compare(archives.wheel, set(wheel.namelist()), set(_list_wheel_files(version, sources)))
        metadata = message_from_bytes(wheel.read(f"srvstat-{version}.dist-info/METADATA"))
    check_links(str(metadata.get_payload()), version, sources)


def check_links(description: str, version: str, sources: Iterable[str]) -> None:
    """Check that a description has no relative links, and that its links lead to sources.

    Raises ReleaseError.
    """
    address = read_project()["project"]["urls"]["Homepage"]
    folders = {str(parent) for name in sources for parent in PurePosixPath(name).parents}
    links = re.findall(r"\]\(([^)]+)\)", description)
    if not links:
        raise ReleaseError("the description of the package has no links; it should be README.md")
    for link in links:
        target = re.fullmatch(rf"{address}/(?:blob|raw)/v{re.escape(version)}/([^#]+)(#.*)?", link)
        if target and target[1].rstrip("/") not in {*sources, *folders}:
            raise ReleaseError(f"README.md: the link to {target[1]} leads to no file")
        if not target and not link.startswith(("https://", "#")):
            raise ReleaseError(f"README.md: the link {link} does not work outside the repository")


def _list_wheel_files(version: str, sources: Iterable[str]) -> Iterable[str]:
    shared = read_project()["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    for name in sources:
        if name.startswith("src/"):
            yield name.removeprefix("src/")
        for source, target in shared.items():
            if name == source or name.startswith(f"{source}/"):
                yield f"srvstat-{version}.data/data/{target}{name.removeprefix(source)}"
    yield from (f"srvstat-{version}.dist-info/{name}" for name in _METADATA)


def _compare(archive: Path, found: AbstractSet[str], expected: AbstractSet[str]) -> None:
    for problem, names in (("lacks", expected - found), ("must not have", found - expected)):
        if names:
            raise ReleaseError(f"{archive.name} {problem} {', '.join(sorted(names)[:10])}")
