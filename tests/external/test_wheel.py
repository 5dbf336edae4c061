"""Build a release twice, and use its wheel in an empty environment, like `make release-check`."""

import sys
from pathlib import Path

import pytest

from conftest import ROOT
from release.builds import build_twice
from release.contents import check_contents
from release.installation import check_installation, create_environment, write_expected_answers

pytestmark = pytest.mark.external

PYTHON = ROOT / ".venv" / "release" / "bin" / "python"
SWAGGER = ROOT / "src" / "srvstat" / "web" / "swagger-ui"


@pytest.mark.skipif(not PYTHON.exists(), reason="needs build; see `make external`")
@pytest.mark.skipif(not SWAGGER.exists(), reason="needs Swagger UI; see `make api-page`")
def test_the_wheel_of_two_equal_builds_answers_like_the_source_tree(tmp_path: Path) -> None:
    archives = build_twice(tmp_path / "builds", str(PYTHON))
    check_contents(archives)

    expected = write_expected_answers(tmp_path / "expected", sys.executable)
    python = create_environment(sys.executable, tmp_path / "environment")
    check_installation(python, archives.wheel, tmp_path / "answers", expected)
