"""Check that the examples of docs/fleet.md that need Spark print the shown output."""

import pytest

import generate
from conftest import ROOT
from support.spark import skip_without_spark

pytestmark = pytest.mark.external


def test_the_examples_with_spark_print_the_shown_output(quick_srvstat: str) -> None:
    skip_without_spark()
    text = (ROOT / "docs" / "fleet.md").read_text(encoding="utf-8")

    today = generate.run_examples(text, quick_srvstat, with_spark=True)

    assert today.count("--engine spark") > 0
    for shown, printed in zip(text.splitlines(), today.splitlines(), strict=True):
        assert generate.is_same_apart_from_times(shown, printed)
