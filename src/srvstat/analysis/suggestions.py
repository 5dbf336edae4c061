"""Suggest servers for a reference that names none."""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice, product

from srvstat.contract.requests import NAMESPACES, Namespace, ServerReference
from srvstat.snapshot.read.snapshot import Snapshot

_MAX_COMPARED_CHARACTERS = 12_000
"""Comparing this many takes about 20 ms."""


def suggest_servers(snapshot: Snapshot, unknown: ServerReference) -> str | None:
    """Return a hint such as `did you mean cfxId:abc?` for an unknown reference; None without one.

    Raises SnapshotError.
    """
    for namespace in NAMESPACES:
        if namespace != unknown.by and _find_known(snapshot, namespace, [unknown.identifier]):
            return f"did you mean {namespace}:{unknown.identifier}?"
    known = snapshot.find_source_id(unknown.identifier)
    if known is not None and _find_known(snapshot, "id", [known]):
        return f"did you mean id:{known}, which its source calls {unknown.identifier}?"
    names = {name.lower(): name for name in _find_neighbors(snapshot, unknown)}
    near = [names[name] for name in get_close_matches(unknown.identifier.lower(), names)]
    near = _find_known(snapshot, unknown.by, near)
    return f"similar: {', '.join(near)}" if near else None


def _find_neighbors(snapshot: Snapshot, unknown: ServerReference) -> list[str]:
    """Return the few identifiers before and after an unknown one, in order.

    Upper case sorts before lower case, so each spelling has its own neighbors.
    """
    text = unknown.identifier
    spellings = {text, text.lower(), text.upper()}
    most = _MAX_COMPARED_CHARACTERS // len(text) // (2 * len(spellings))
    found: set[str] = set()
    for spelling, backwards in product(spellings, (False, True)):
        around = snapshot.iter_identifiers(unknown.by, spelling, backwards=backwards)
        found.update(islice(around, most))
    return sorted(found)


def _find_known(snapshot: Snapshot, by: Namespace, identifiers: Iterable[str]) -> list[str]:
    """Return the identifiers that name a server."""
    return [name for name in identifiers if snapshot.has_identifier(by, name)]
