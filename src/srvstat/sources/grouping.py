"""Group the rows of a batch by server."""

from array import array
from collections import defaultdict
from dataclasses import replace
from itertools import accumulate, chain
from operator import itemgetter
from sys import byteorder

from srvstat.sources.batch import Batch, Runs


def group_rows(batch: Batch) -> Batch:
    """Return a batch with its rows grouped by server; those of a server stay in order."""
    if isinstance(batch.server_ids, Runs):
        return batch
    positions: defaultdict[str, list[int]] = defaultdict(list)
    for position, of_server in enumerate(map(positions.__getitem__, batch.server_ids)):
        of_server.append(position)
    runs = Runs(list(positions), list(accumulate(map(len, positions.values()))))
    if all(each[-1] - each[0] < len(each) for each in positions.values()):
        return replace(batch, server_ids=runs)
    order = list(chain.from_iterable(positions.values()))
    pick = itemgetter(*order)
    instants, players = array("q", pick(batch.instants)), array("q", pick(batch.players))
    if isinstance(batch.places, range):
        places = add_to_each(array("q", order), batch.places.start)
    else:
        places = array("q", pick(batch.places))
    return replace(batch, server_ids=runs, instants=instants, players=players, places=places)


def add_to_each(values: "array[int] | memoryview[int]", added: int) -> "array[int]":
    """Add a number to 64-bit integers that are not negative, as one sum of two long integers."""
    shifts = array("q", [added]) * len(values)
    both = [int.from_bytes(memoryview(each).cast("B"), byteorder) for each in (values, shifts)]
    sums = array("q")
    sums.frombytes(sum(both).to_bytes(sums.itemsize * len(values), byteorder))
    return sums
