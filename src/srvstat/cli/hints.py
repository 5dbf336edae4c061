"""Add hints to errors."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress

from srvstat.cli.options import find_snapshot
from srvstat.contract.errors import InvalidRequestError, ServerNotFoundError, SrvstatError
from srvstat.contract.requests import Namespace
from srvstat.operations import UnknownServerError
from srvstat.snapshot.read.snapshot import Snapshot, open_snapshot


@contextmanager
def add_hint(*snapshots: Snapshot) -> Iterator[None]:
    """Add a hint to the error of an unknown server or name that the block raises.

    The first snapshot that has a hint gives it.
    """
    try:
        yield
    except UnknownServerError as error:
        reference = error.reference
        hint = _find_hint(snapshots, reference.identifier, reference.by)
        raise ServerNotFoundError(error.reason + hint) from None
    except InvalidRequestError as error:
        from srvstat.analysis.selection import UnknownNameError  # noqa: PLC0415 - see _find_hint

        if not isinstance(error, UnknownNameError):
            raise
        hint = _find_hint(snapshots, error.name, "id")
        raise InvalidRequestError(error.reason + hint) from None


@contextmanager
def add_name_hint(
    identifiers: Sequence[str], by: str | None, snapshot: str | None
) -> Iterator[None]:
    """Add a hint to the error of an identifier that can't be one, but may be the name of a server.

    The request is invalid, whatever the state of the snapshot.
    """
    try:
        yield
    except InvalidRequestError as error:
        from srvstat.analysis.selection import Name, build_references  # noqa: PLC0415 - see _find_hint

        hint = ""
        with suppress(SrvstatError):
            references = build_references(identifiers, by)
            names = [one.text for one in references if isinstance(one, Name) and not one.reference]
            if names:
                with closing(open_snapshot(find_snapshot(snapshot))) as file:
                    hint = _find_hint([file], names[0], "id")
        raise InvalidRequestError(error.reason + hint) from None


def _find_hint(snapshots: Iterable[Snapshot], unknown: str, by: Namespace) -> str:
    """Return a hint after a semicolon, or nothing."""
    # Only an error pays for this import.
    from srvstat.analysis.suggestions import suggest_servers  # noqa: PLC0415 - see above

    hints = (suggest_servers(snapshot, unknown, by) for snapshot in snapshots)
    return next((f"; {hint}" for hint in hints if hint), "")
