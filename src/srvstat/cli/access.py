"""`access new-key` and `access check`: extend and check the file of plans and keys."""

import hashlib
from typing import Annotated

import typer

from srvstat.access import add_key, generate_key, read_access
from srvstat.analysis.access_check import summarize_access
from srvstat.cli.options import AccessFileOption, JsonOption, TableOption, complete_plan
from srvstat.cli.output import Outcome, ReaderGoneError, choose_form, report, write
from srvstat.cli.show import show
from srvstat.cli.signals import allow_cleanup
from srvstat.contract.errors import OutputError

_DEFAULT_FILE = "access.toml"

PlanNameOption = Annotated[
    str, typer.Option(metavar="NAME", help="The plan of the key.", autocompletion=complete_plan)
]


def new_key(plan: PlanNameOption, access: AccessFileOption = _DEFAULT_FILE) -> Outcome:
    """Create a key and print it once.

    Appends its digest and its plan to the access file.

    Example: srvstat access new-key --plan starter
    """
    read_access(access).get_plan(plan)
    key = generate_key()
    with allow_cleanup():
        add_key(access, plan, key)
    _print_key(key, plan, access)
    return Outcome()


def _print_key(key: str, plan: str, access: str) -> None:
    """Print a key. If that fails, report its digest, so that the user can remove it.

    Raises OutputError, ReaderGoneError.
    """
    try:
        write(f"{key}\n".encode())
    except (OutputError, ReaderGoneError):
        digest = f'sha256 = "{hashlib.sha256(key.encode()).hexdigest()}"'
        report(f"{access}: the key was added but not printed; remove the one with {digest}")
        raise
    report(f"a new key of the plan {plan}, shown only once: {access} has only its digest")


def check(
    access: AccessFileOption = _DEFAULT_FILE, json: JsonOption = False, table: TableOption = False
) -> Outcome:
    """Show what each plan of an access file allows.

    Example: srvstat access check --access access.toml
    """
    form = choose_form(json=json, table=table)
    return show(summarize_access(read_access(access)), form)
