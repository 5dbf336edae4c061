"""Check a release: `make release-check`."""

import argparse
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from release.builds import Archives, build_twice, run
from release.contents import check_contents
from release.installation import (
    check_installation,
    create_environment,
    install,
    write_expected_answers,
)
from release.project import (
    ROOT,
    ReleaseError,
    check_tag,
    list_supported_pythons,
    read_version,
)
from release.pythons import find_pythons


def main() -> None:
    """Run all checks. Exit with 1 and a message at the first that fails."""
    options = _parse_arguments()
    try:
        with tempfile.TemporaryDirectory(prefix="srvstat-release-") as work:
            _check_release(Path(work), options)
    except ReleaseError as error:
        raise SystemExit(f"error: {error}") from None


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="release", description=__doc__)
    parser.add_argument(
        "--source", required=True, help="a Python that has the source tree installed"
    )
    parser.add_argument(
        "--suite",
        choices=["one", "all", "none"],
        default="one",
        help="run the tests of the sdist with one Python, with all or with none",
    )
    parser.add_argument("--tag", help="also check that this is the tag of a release")
    parser.add_argument("--output", type=Path, help="copy the checked archives to this directory")
    return parser.parse_args()


def _check_release(work: Path, options: argparse.Namespace) -> None:
    if options.tag:
        changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
        check_tag(options.tag, read_version(), changelog)
        _say(f"{options.tag} is the tag of this version, and CHANGELOG.md has its date")
    _check_tree(is_release=bool(options.tag))
    archives = build_twice(work / "builds")
    _say("two builds have equal bytes: " + ", ".join(path.name for path in archives))
    check_contents(archives)
    run([sys.executable, "-m", "twine", "check", "--strict", *map(str, archives)], work)
    _say("the archives contain what they must and nothing else; their metadata is valid")
    expected = write_expected_answers(work / "expected", options.source)
    environments = {}
    for version, python in find_pythons(list_supported_pythons()).items():
        if python is None:
            _say(f"Python {version} is not installed here, so it was not tried")
            continue
        environments[version] = create_environment(python, work / f"python{version}")
        answers = work / f"answers{version}"
        check_installation(environments[version], archives.wheel, answers, expected)
        _say(f"Python {version}: the wheel gives the answers of the source tree")
    if not environments:
        raise ReleaseError("no supported Python was found on PATH or in pyenv's versions")
    _run_suites(work, archives, environments, options.suite)
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
        for archive in archives:
            shutil.copy(archive, options.output)
            _say(f"wrote {options.output / archive.name}")


def _run_suites(work: Path, archives: Archives, environments: dict[str, Path], suite: str) -> None:
    """Run the tests of the unpacked sdist, with srvstat installed from the wheel."""
    failed = []
    chosen = {"none": [], "one": [*environments][:1], "all": [*environments]}[suite]
    for version in chosen:
        with tarfile.open(archives.sdist) as sdist:
            sdist.extractall(work / f"suite{version}", filter="data")
        (tree,) = (work / f"suite{version}").iterdir()
        python = environments[version]
        install(python, f"{archives.wheel}[dev]")
        _say(f"Python {version}: the tests of the sdist")
        options = ["--quiet", "--numprocesses", "2", "--dist", "worksteal"]
        tests = [str(python), "-m", "pytest", *options]
        if subprocess.run(tests, cwd=tree, check=False).returncode:
            failed.append(version)
    if failed:
        raise ReleaseError(f"the tests of the sdist fail with Python {', '.join(failed)}")


def _check_tree(*, is_release: bool) -> None:
    """Check that a release has no changes that are not committed; otherwise only mention them."""
    status = ["git", "status", "--porcelain"]
    if subprocess.run(status, cwd=ROOT, capture_output=True, check=False).stdout:
        if is_release:
            raise ReleaseError("the working tree has changes; commit them before the release")
        _say("the working tree has changes that are not committed; they are part of the archives")


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
