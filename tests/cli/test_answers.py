"""The answers of `get` and `compare` on the command line."""

import itertools

from conftest import Cli


def test_results_keep_the_order_of_the_request(cli: Cli, demo_snapshot: str) -> None:
    references = ["harbor-city", "cfxId:nf8q1z", "old-guard", "cfxId:fa9t5w", "id:night-shift"]
    ids = ["harbor-city", "new-frontier", "old-guard", "flaky-arena", "night-shift"]
    ids_by_reference = dict(zip(references, ids, strict=True))
    whole = cli("compare", *references, "-s", demo_snapshot, "--range", "24h").json["data"]
    results_by_reference = dict(zip(references, whole, strict=True))

    for order in itertools.permutations(references):
        data = cli("compare", *order, "-s", demo_snapshot, "--range", "24h").json["data"]
        assert [result["serverId"] for result in data] == [ids_by_reference[name] for name in order]
        assert data == [results_by_reference[name] for name in order]
