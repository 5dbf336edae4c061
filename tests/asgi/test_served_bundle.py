"""A service that serves a bundle answers what the bundle covers, and nothing else."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from asgi import explored
from asgi.log_entries import log_request
from asgi.small_service import NOT_FOUND, build_small
from srvstat.cli.main import main
from support.http import ERRORS, Expected, check_answer, compare, get, send_request
from support.process import Service, serve

pytestmark = pytest.mark.slow

INTERNAL_ERROR = Expected(500, ERRORS["INTERNAL_ERROR"])


def ask(range: str, *names: str) -> bytes:
    """Return the request of a comparison; each server is named by its id and its cfxId."""
    servers = [
        {"identifier": prefix + name, "by": by}
        for name in names
        for by, prefix in (("id", ""), ("cfxId", "x-"))
    ]
    return compare(json.dumps({"servers": servers, "range": range}).encode())


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    directory = tmp_path_factory.mktemp("bundle")
    path = directory / "case.db"
    options = ["-s", str(build_small(directory)), "--range", "7d", "-o", str(path)]
    assert main(["snapshot", "bundle", "a", *options]) == 0
    with serve(path, "--explore") as running:
        yield running


def test_covered_questions_have_the_answers_of_the_parent(service: Service, tmp_path: Path) -> None:
    with serve(build_small(tmp_path)) as parent:
        for sent in (get(b"a"), ask("24h", "a"), ask("7d", "a")):
            expected = send_request(parent, sent)
            assert expected.status == 200
            check_answer(service, sent, Expected(200, expected.body))
        check_answer(parent, get(b"nobody"), NOT_FOUND)


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (get(b"b"), "a bundle without id b"),
        (get(b"nobody"), "a bundle without id nobody"),
        (ask("7d", "a", "b"), "a bundle without id b"),
        (ask("30d", "a"), "a bundle that covers 2026-02-22T00:00:00.000Z and later"),
    ],
)
def test_other_questions_are_internal_errors_with_a_reason_in_the_log(
    sent: bytes, reason: str, service: Service
) -> None:
    check_answer(service, sent, INTERNAL_ERROR)
    entry = log_request(service, sent)
    assert (entry["status"], entry["code"]) == (500, "INTERNAL_ERROR")
    assert reason in entry["reason"]


@pytest.mark.parametrize("path", [explored.TIMELINE, explored.STATS])
def test_no_data_of_the_explore_page_go_beyond_the_bundle(service: Service, path: str) -> None:
    answers = {span: explored.ask(service, f"{path}?id=a&range={span}") for span in ("7d", "30d")}

    assert {span: answer.status for span, answer in answers.items()} == {"7d": 200, "30d": 500}
    # The bundle does not have the week before, so there is no change, and nothing about it.
    figures = answers["7d"].json["servers"][0]
    assert (figures.get("change"), figures.get("previousCoverage")) == (None, None)
