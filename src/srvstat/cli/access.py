"""`access new-key` and `access check`: the file of plans and keys."""

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from srvstat.cli.interruptions import allow_cleanup
from srvstat.cli.options import TableOption, complete_plan
from srvstat.cli.output import (
    Form,
    Outcome,
    ReaderGoneError,
    choose_form,
    json_output,
    report,
    write,
)
from srvstat.cli.snapshots import JsonOption
from srvstat.contract import wire
from srvstat.contract.errors import OutputError

if TYPE_CHECKING:
    from srvstat.access import Access
    from srvstat.documents.views import AccessView

ACCESS_DEFAULT = "access.toml"

AccessFileOption = Annotated[
    str, typer.Option("--access", metavar="FILE", help="The file of plans and keys.")
]


def new_key(
    plan: Annotated[
        str,
        typer.Option(metavar="NAME", help="The plan of the key.", autocompletion=complete_plan),
    ],
    access: AccessFileOption = ACCESS_DEFAULT,
) -> Outcome:
    """Make a key and print it, this once.

    Its digest is added to the end of the file, with the plan.

    Example: srvstat access new-key --plan starter
    """
    from srvstat.access import add_key, generate_key, read_access

    read_access(access).get_plan(plan)
    key = generate_key()
    with allow_cleanup():
        add_key(access, plan, key)
    _show_once(key, plan, access)
    return Outcome()


def _show_once(key: str, plan: str, access: str) -> None:
    """Print a key, or say which digest nobody has the key of.

    Raises OutputError, ReaderGoneError.
    """
    try:
        write(f"{key}\n".encode())
    except (OutputError, ReaderGoneError):
        import hashlib

        sha256 = hashlib.sha256(key.encode()).hexdigest()
        report(f'nobody has seen the key: remove the one with sha256 = "{sha256}" from {access}')
        raise
    report(f"a key of the plan {plan}, shown this once: {access} keeps its digest alone")


def check(
    access: AccessFileOption = ACCESS_DEFAULT, json: JsonOption = False, table: TableOption = False
) -> Outcome:
    """Show what each plan of the file may do.

    Example: srvstat access check --access access.toml
    """
    form = choose_form(json=json, table=table)
    from srvstat.access import read_access

    view = _view(read_access(access))
    if form is Form.JSON:
        return Outcome([json_output(wire.encode(_check_body(view)))])
    from srvstat.cli.tables import access_table

    return Outcome([access_table(view)])


def _view(access: "Access") -> "AccessView":
    from srvstat.documents.views import AccessView, PlanView

    keys = Counter(customer.plan.name for customer in access.customers)
    plans = (
        PlanView(
            plan.name,
            plan.operations,
            plan.ranges,
            plan.raw_history_days,
            plan.requests_per_minute,
            keys[plan.name],
        )
        for plan in access.plans.values()
    )
    return AccessView(tuple(plans))


def _check_body(view: "AccessView") -> dict[str, Any]:
    return {
        "plans": [
            {
                "name": plan.name,
                "operations": plan.operations,
                "ranges": plan.ranges,
                "rawHistoryDays": plan.raw_history_days,
                "requestsPerMinute": plan.requests_per_minute,
                "keys": plan.keys,
            }
            for plan in view.plans
        ],
        "keys": sum(plan.keys for plan in view.plans),
    }
