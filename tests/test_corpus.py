"""Run the corpus: the seeds of the fuzzer and all inputs that once failed."""

from pathlib import Path

import pytest

from campaigns.harnesses import HARNESSES
from campaigns.hostile_snapshots import NOT_FOUND, REFUSED, read_correct_answers

CORPUS = Path(__file__).parent / "corpus"


@pytest.mark.parametrize(
    "path", sorted(CORPUS.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.name}"
)
def test_no_input_of_the_corpus_fails(path: Path) -> None:
    HARNESSES[path.parent.name](path.read_bytes())


def test_every_harness_has_a_corpus() -> None:
    assert {path.name for path in CORPUS.iterdir()} == set(HARNESSES)


def test_the_undamaged_snapshot_of_the_corpus_answers() -> None:
    assert REFUSED not in read_correct_answers()
    assert read_correct_answers().count(NOT_FOUND) == 1
