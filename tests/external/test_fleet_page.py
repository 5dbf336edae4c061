"""Check that the examples of docs/fleet.md that need Spark print the shown output."""

import pytest

from conftest import ROOT
from support.spark import skip_without_spark
from test_docs import generate

pytestmark = pytest.mark.external


def test_the_examples_with_spark_print_the_shown_output(quick_srvstat: str) -> None:
    skip_without_spark()

    generate("--examples", ROOT / "docs" / "fleet.md", "--spark", "--programs", quick_srvstat)
