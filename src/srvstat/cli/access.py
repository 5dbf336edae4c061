"""`access new-key` and `access check`: the file of plans and keys."""

import hashlib
from typing import Annotated

import typer

from srvstat.access import add_key, generate_key, read_access
from srvstat.analysis.access_check import summarize_access
from srvstat.cli.options import JsonOption, TableOption, complete_plan
from srvstat.cli.output import Outcome, ReaderGoneError, choose_form, report, write
from srvstat.cli.show import show
from srvstat.cli.signals import allow_cleanup
from srvstat.contract.errors import OutputError

_DEFAULT_FILE = "access.toml"

AccessFileOption = Annotated[
    str, typer.Option("--access", metavar="FILE", help="The file of plans and keys.")
]
PlanNameOption = Annotated[
    str, typer.Option(metavar="NAME", help="The plan of the key.", autocompletion=complete_plan)
]


def new_key(plan: PlanNameOption, access: AccessFileOption = _DEFAULT_FILE) -> Outcome:
    """Create a key and print it once.

    Adds its digest and its plan to the end of the file.

    Example: srvstat access new-key --plan starter
    """
    read_access(access).get_plan(plan)
    key = generate_key()
    with allow_cleanup():
        add_key(access, plan, key)
    _print_key(key, plan, access)
    return Outcome()


def _print_key(key: str, plan: str, access: str) -> None:
    """Print a key; on failure report its digest, so that it can be removed.

    Raises OutputError, ReaderGoneError.
    """
    try:
        write(f"{key}\n".encode())
    except (OutputError, ReaderGoneError):
        sha256 = hashlib.sha256(key.encode()).hexdigest()
        report(f'the key was not printed: remove the one with sha256 = "{sha256}" from {access}')
        raise
    report(f"a key of the plan {plan}, printed only once: {access} keeps nothing but its digest")


def check(
    access: AccessFileOption = _DEFAULT_FILE, json: JsonOption = False, table: TableOption = False
) -> Outcome:
    """Show what each plan of an access file allows.

    Example: srvstat access check --access access.toml
    """
    form = choose_form(json=json, table=table)
    return show(summarize_access(read_access(access)), form)
