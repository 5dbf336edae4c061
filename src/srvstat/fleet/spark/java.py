"""Check that a Java runtime is installed which Spark can use."""

import os
import re
import subprocess

from srvstat.contract.errors import MissingLibraryError

OLDEST = 17
"""The oldest version of Java that Spark 4 runs on."""

_SECONDS = 60
_REMEDY = (
    f"install Java {OLDEST} or newer (Debian: apt install default-jre-headless;"
    f" macOS: brew install openjdk@{OLDEST}; conda: conda install openjdk={OLDEST}),"
    " or set JAVA_HOME to its folder"
)
# `openjdk version "17.0.15"`, but `java version "1.8.0_392"` before Java 9.
_VERSION = re.compile(r'version "(?:1\.)?([0-9]+)')


def check_java() -> None:
    """Check the Java runtime that Spark will start: that of JAVA_HOME, else that of PATH.

    Raises MissingLibraryError, with the version that is needed, and how to install it.
    """
    home = os.environ.get("JAVA_HOME")
    program, place = (f"{home}/bin/java", f"JAVA_HOME, {home}") if home else ("java", "PATH")
    try:
        printed = _print_version(program)
    except (OSError, subprocess.SubprocessError):
        raise MissingLibraryError(
            f"Spark needs Java, and there is none in {place}; {_REMEDY}"
        ) from None
    found = _VERSION.search(printed)
    if not found:
        raise MissingLibraryError(f"{program}: not a Java runtime; {_REMEDY}")
    if int(found[1]) < OLDEST:
        raise MissingLibraryError(f"{program}: Java {found[1]} is too old for Spark; {_REMEDY}")


def _print_version(program: str) -> str:
    # macOS has a program of this name that only says how to install Java, and fails.
    done = subprocess.run(  # noqa: S603 - the program that Spark itself will run
        [program, "-version"],
        check=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_SECONDS,
    )
    return (done.stderr + done.stdout).decode(errors="replace")
