"""`snapshot info`: describe a snapshot."""

from contextlib import closing

from srvstat.analysis.info import describe_snapshot
from srvstat.cli.options import (
    JsonOption,
    PathArgument,
    SnapshotOption,
    TableOption,
    choose_snapshot,
)
from srvstat.cli.output import Form, Outcome, choose_form
from srvstat.cli.show import show
from srvstat.snapshot.read.reader import open_file


def info(
    path: PathArgument = None,
    snapshot: SnapshotOption = None,
    json: JsonOption = False,
    table: TableOption = False,
) -> Outcome:
    """Show what is in a snapshot.

    Prints totals, and the servers with the number and the span of their observations.

    Example: srvstat snapshot info snapshot.db
    """
    form = choose_form(json=json, table=table)
    with closing(open_file(choose_snapshot(path, snapshot))) as file:
        return show(describe_snapshot(file, list_all=form is Form.JSON), form)
