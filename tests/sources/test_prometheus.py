"""Read answers of Prometheus."""

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import AS_OF
from sources.readings import read_rows
from srvstat.contract.errors import SourceError, UsageError
from srvstat.sources.mapping import ColumnMapping
from srvstat.sources.source import Source, read_batches

SECONDS = AS_OF // 1000
BY_SERVER = ColumnMapping(id="server")

# The example of "Range queries" in the documentation of Prometheus' HTTP API.
DOCUMENTED = b"""{
   "status" : "success",
   "data" : {
      "resultType" : "matrix",
      "result" : [
         {
            "metric" : {"__name__" : "up", "job" : "prometheus", "instance" : "localhost:9090"},
            "values" : [
               [ 1435781430.781, "1" ], [ 1435781445.781, "1" ], [ 1435781460.781, "1" ]
            ]
         },
         {
            "metric" : {"__name__" : "up", "job" : "node", "instance" : "localhost:9091"},
            "values" : [
               [ 1435781430.781, "0" ], [ 1435781445.781, "0" ], [ 1435781460.781, "1" ]
            ]
         }
      ]
   }
}"""


def build_series(labels: dict[str, str], *values: Any, **members: Any) -> dict[str, Any]:
    return {"metric": labels, "values": values, **members}


def build_answer(*series: Any, **members: Any) -> bytes:
    data = {"resultType": "matrix", "result": series}
    return json.dumps({"status": "success", "data": data, **members}).encode()


def test_the_documented_example_is_read_exactly(tmp_path: Path) -> None:
    path = tmp_path / "range.json"
    path.write_bytes(DOCUMENTED)

    found = read_rows(path, "prometheus", ColumnMapping(id="instance"))

    times = [1435781430781, 1435781445781, 1435781460781]
    assert list(found.kept.values()) == [
        *(("localhost:9090", at, 1) for at in times),
        *(("localhost:9091", at, count) for at, count in zip(times, (0, 0, 1), strict=True)),
    ]


def test_the_only_label_names_the_server_and_answers_can_follow_each_other(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    vector = {"metric": {"job": "a"}, "value": [SECONDS + 60, "7"]}
    matrix = build_series({"__name__": "players", "job": "a"}, [SECONDS, "5"], histograms=[[1, {}]])
    path.write_bytes(build_answer(matrix) + build_answer() + build_answer(vector))

    found = read_rows(path, "prometheus")

    assert found.kept == {1: ("a", AS_OF, 5), 3: ("a", AS_OF + 60_000, 7)}
    assert found.skipped == {"native histogram": 1}


def test_the_name_of_the_metric_can_name_the_server(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(build_answer(build_series({"__name__": "up", "job": "a"}, [SECONDS, "5"])))

    found = read_rows(path, "prometheus", ColumnMapping(id="__name__"))

    assert found.kept == {1: ("up", AS_OF, 5)}


def test_a_sample_is_a_whole_number_or_is_skipped_or_rejected(tmp_path: Path) -> None:
    values = ["5", "5.0", "1.2e1", "+3", "NaN", "5.5", "-1", "+Inf", "1e99", "x", 5]
    samples = [[SECONDS + at, value] for at, value in enumerate(values)]
    bad = [[-1, "5"], ["1", "5"], [1e300, "5"], [SECONDS], 5, [[], "5"]]
    path = tmp_path / "a.json"
    path.write_bytes(build_answer(build_series({"server": "a"}, *samples, *bad)))

    found = read_rows(path, "prometheus", BY_SERVER)

    expected = {place: ("a", AS_OF + (place - 1) * 1000, 5) for place in (1, 2)}
    expected |= {
        place: ("a", AS_OF + (place - 1) * 1000, count) for place, count in ((3, 12), (4, 3))
    }
    assert found.kept == expected
    assert found.skipped == {"not a number (NaN)": 1}
    reasons = [reason.partition(":")[0] for reason in found.rejects.values()]
    assert list(found.rejects) == list(range(6, 18))
    assert (
        reasons
        == ["players"] * 6 + ["observedAt"] * 3 + ["must be an array of a time and a value"] * 3
    )


@pytest.mark.parametrize(
    ("seconds", "milliseconds"),
    [
        ("1772366400.0009", 1772366400000),
        (f"1772366400.{'9' * 40}", 1772366400999),
        ("253402300799.9999", 253402300799999),
        ("1e-999999999", 0),
        ("1e999999999", None),
        ("253402300800", None),
        ("-0.0001", None),
    ],
)
def test_digits_beyond_milliseconds_are_cut(
    seconds: str, milliseconds: int | None, tmp_path: Path
) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(build_answer(build_series({"server": "a"}, ["@", "5"])))
    path.write_text(path.read_text().replace('"@"', seconds))

    found = read_rows(path, "prometheus")

    assert [at for _, at, _ in found.kept.values()] == [milliseconds] * len(found.kept)
    assert len(found.rejects) == (milliseconds is None)


NOT_AN_ANSWER = "must be an answer of Prometheus to query_range or query, "
TWO = {"job": "a", "instance": "b"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"[]", NOT_AN_ANSWER),
        (b"{}", NOT_AN_ANSWER),
        (b'{"data": []}', NOT_AN_ANSWER),
        (b'{"data": {"result": {}}}', NOT_AN_ANSWER),
        (b'{"data": {"resultType": "scalar", "result": [1, "1"]}}', NOT_AN_ANSWER),
        (
            b'{"status": "error", "errorType": "bad_data", "error": "parse error"}',
            "an error of Prometheus: parse error",
        ),
        (b'{"status": "error", "error": {}}', "an error of Prometheus: unknown"),
        (
            build_answer(build_series({"server": "a"}), build_series(TWO)),
            "series 2: no label server; its labels are instance, job; --columns id=LABEL names",
        ),
        (
            build_answer(build_series({"__name__": "up"})),
            "series 1: no label server; it has no labels; ",
        ),
        (
            build_answer(build_series({"server": "a"}), build_series({"server": "a"})),
            'series 2: server is "a", as in series 1; name another label with --columns id=LABEL',
        ),
        (
            build_answer({"values": [], "metric": {"server": "a"}}),
            "series 1: must begin with `metric`",
        ),
        (build_answer({"metric": {"server": 5}}), "series 1: the label server must be a string"),
        (
            b'{"data": {"result": [{"metric": {"server": "a", "server": "b"}}]}}',
            "series 1: the label server is repeated",
        ),
        (build_answer({"metric": []}), "series 1: `metric` must be an object"),
        (build_answer({"metric": {"server": "a"}, "values": 5}), "series 1: `values` must be an"),
    ],
)
def test_another_answer_is_refused(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)

    with pytest.raises(SourceError) as caught:
        read_rows(path, "prometheus", BY_SERVER)

    separator = ", " if reason.startswith("series") else ": "
    assert caught.value.reason.startswith(f"{path}{separator}{reason}")


def test_a_warning_of_prometheus_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(build_answer(build_series({"server": "a"}), warnings=["no store matched"]))
    warnings: list[str] = []

    list(read_batches(Source(str(path), "prometheus", on_warning=warnings.append)))

    assert warnings == [f"{path}: a warning of Prometheus: no store matched"]


@pytest.mark.parametrize(
    "mapping",
    [
        ColumnMapping(is_wide=True),
        ColumnMapping(at="time"),
        ColumnMapping(id="job", time_unit="ms"),
        ColumnMapping(time_zone="UTC"),
    ],
)
def test_a_mapping_names_a_label_only(mapping: ColumnMapping, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--from prometheus: takes --columns id=LABEL only"):
        read_rows(tmp_path / "a.json", "prometheus", mapping)
