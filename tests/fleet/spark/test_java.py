"""Test the check for Java, with small programs in its place."""

import os
from pathlib import Path

import pytest

from srvstat.contract.errors import MissingLibraryError
from srvstat.fleet.spark.java import check_java
from support.spark import run_session, skip_without_spark

HOW = "apt install default-jre-headless"


def install(home: Path, script: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    return home


@pytest.mark.parametrize("version", ["17.0.15", "21", "25.0.1-ea"])
def test_java_17_and_newer_ones_are_accepted(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = install(tmp_path, f"echo 'openjdk version \"{version}\" 2025-04-15' >&2")
    monkeypatch.setenv("JAVA_HOME", str(home))

    check_java()


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("echo 'java version \"1.8.0_392\"' >&2", "bin/java: Java 8 is too old"),
        ("echo 'openjdk version \"11.0.2\"' >&2", "bin/java: Java 11 is too old"),
        ("echo hello", "bin/java: not a Java runtime"),
        ("exit 1", "there is none in JAVA_HOME"),
    ],
)
def test_another_program_is_refused_with_a_remedy(
    script: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(install(tmp_path, script)))

    with pytest.raises(MissingLibraryError, match=problem) as refused:
        check_java()

    assert HOW in refused.value.reason


@pytest.mark.parametrize("is_set", [True, False])
def test_a_missing_java_is_reported_with_the_place_where_spark_looks(
    is_set: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    if is_set:
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    else:
        monkeypatch.delenv("JAVA_HOME", raising=False)
    place = f"JAVA_HOME, {tmp_path}/nowhere" if is_set else "PATH"

    with pytest.raises(MissingLibraryError, match=f"there is none in {place}; install Java 17"):
        check_java()


@pytest.mark.external
@pytest.mark.parametrize(
    ("last_words", "said"),
    [
        ("echo oops", "nothing"),
        ("echo 'Invalid heap size'; echo 'Error: A fatal exception'; exit 1", "Invalid heap size"),
    ],
)
def test_java_that_ends_at_once_is_quoted(
    last_words: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark", reason="needs PySpark; see `make external`")
    script = f"[ $1 = -version ] && echo 'version \"17\"' || {{ {last_words}; }}"
    monkeypatch.setenv("JAVA_HOME", str(install(tmp_path, script)))

    ran = run_session("local[1]", "pass", tmp_path / "settings")

    assert ran.startswith("EngineError: Spark: its process ended, or the connection to it was lost")
    assert f"it said: {said}" in ran


@pytest.mark.external
def test_a_wrong_home_of_spark_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_without_spark()
    monkeypatch.setenv("SPARK_HOME", "/nowhere")

    ran = run_session("local[1]", "pass", tmp_path)

    assert ran.startswith("EngineError: Spark: /nowhere/bin/spark-submit: No such file")
