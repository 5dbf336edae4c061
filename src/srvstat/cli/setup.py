"""Commands to set up: demo, access keys, and descriptions of what other tools read."""

import hashlib
import os
import shlex
from collections import Counter
from contextlib import closing
from typing import Annotated

from srvstat.analysis.parameters import Parameter
from srvstat.analysis.servers import describe_comparison
from srvstat.cli import demo as files_of_demo
from srvstat.cli.options import ACCESS, PLAN
from srvstat.cli.output import Form, Outcome, PlainForm, ReaderGoneError, report, show, write
from srvstat.cli.output_file import write_file
from srvstat.cli.process import allow_cleanup
from srvstat.contract import wire
from srvstat.contract.errors import OutputError, SnapshotError, UsageError
from srvstat.contract.http import read_openapi
from srvstat.contract.requests import build_compare_request
from srvstat.documents import load_documents
from srvstat.documents.support import AccessCheck, PlanPermissions
from srvstat.files.paths import convert_errors, convert_write_errors
from srvstat.operations.access import Access, add_key, generate_key, read_access
from srvstat.snapshot.read.snapshot import open_snapshot
from srvstat.snapshot.write.build import build
from srvstat.sources.registry import load_reader, load_record_reader
from srvstat.sources.source import Source

_DOCUMENTS = load_documents()

_DirectoryArgument = Annotated[
    str, Parameter("The directory for the four files of the demo.", "DIRECTORY", is_argument=True)
]


def demo(directory: _DirectoryArgument = "srvstat-demo") -> Outcome:
    """Create a small example snapshot.

    Compares three of its servers and shows what to try next. Never replaces a file.

    Example: srvstat demo && export SRVSTAT_SNAPSHOT=srvstat-demo/snapshot.db
    """
    if not directory:
        raise UsageError("DIRECTORY: the name is empty; name a directory")
    # Import the reader now: nothing may be imported while the demo can be interrupted.
    load_reader("csv")
    load_record_reader("ndjson")
    with allow_cleanup():
        path = write_demo(directory)
    request = build_compare_request(
        ["harbor-city", "new-frontier", "night-shift"], by="id", range="7d"
    )
    with closing(open_snapshot(path)) as snapshot:
        comparison = describe_comparison(snapshot, request)
    table = show(comparison, Form.TABLE)
    text = _suggest_commands(path, os.path.join(directory, "access.toml"))
    return Outcome([*table.pieces, text.encode("utf-8", "backslashreplace")])


def _suggest_commands(path: str, access: str) -> str:
    snapshot, access = shlex.quote(path), shlex.quote(access)
    return (
        "\nTry next:\n"
        f"  export SRVSTAT_SNAPSHOT={snapshot}\n"
        "  srvstat get flaky-arena\n"
        "  srvstat compare harbor-city old-guard cfxId:nf8q1z --range 90d\n"
        "  srvstat compare harbor-city new-frontier --json | jq '.data[].medianPlayers'\n"
        f"  srvstat access check --access {access}\n"
        "\nOver HTTP, with any key:\n"
        f"  srvstat serve --snapshot {snapshot}\n"
        "  curl -H 'X-Gateway-Key: any' http://127.0.0.1:8000/gateway/v1/servers/flaky-arena\n"
        "\nIn a browser, http://127.0.0.1:8000/docs shows the API. For pages of your own:\n"
        f"  srvstat serve --snapshot {snapshot} --cors http://localhost:5173 --explain-errors\n"
    )


def write_demo(directory: str) -> str:
    """Write the missing files of the demo, and return the path of its snapshot.

    Raises UsageError if one of the names is taken by another file, OutputError.
    """
    with convert_write_errors(directory):
        os.makedirs(directory, exist_ok=True)
    servers, observations, access, snapshot = (
        os.path.join(directory, name)
        for name in ("servers.ndjson", "observations.csv", "access.toml", "snapshot.db")
    )
    contents = {
        servers: files_of_demo.build_servers_file(),
        observations: files_of_demo.build_observations_file(),
        access: files_of_demo.build_access_file(),
    }
    written = [path for path, content in contents.items() if not _is_present(path, content)]
    has_snapshot = os.path.lexists(snapshot)
    if has_snapshot:
        _check_snapshot(snapshot)
    for path in written:
        write_file(path, contents[path], overwrite=False)
    if not has_snapshot:
        build(
            snapshot,
            servers_source=Source(servers, "ndjson"),
            observation_sources=[Source(observations, "csv")],
        )
        written.append(snapshot)
    if written:
        report(f"wrote {' and '.join(filter(None, (', '.join(written[:-1]), written[-1])))}")
    return snapshot


def _is_present(path: str, content: bytes) -> bool:
    """Return whether a file of the demo already exists.

    The access file may be longer: users add keys to it.

    Raises UsageError if the file has other content, OutputError.
    """
    if not os.path.lexists(path):
        return False
    with convert_errors(path, OutputError), open(path, "rb") as file:
        found = file.read(len(content))
        has_more = bool(file.read(1)) and not path.endswith(".toml")
    if found != content or has_more:
        raise _build_exists_error(path)
    return True


def _check_snapshot(path: str) -> None:
    try:
        with closing(open_snapshot(path)) as snapshot:
            identifiers = list(snapshot.iter_identifiers("id"))
            is_ours = (snapshot.as_of, identifiers) == (files_of_demo.AS_OF, files_of_demo.IDS)
    except SnapshotError:
        is_ours = False
    if not is_ours:
        raise _build_exists_error(path)


def _build_exists_error(path: str) -> UsageError:
    return UsageError(
        f"{path}: exists and is not of this version's demo; remove it, or name another directory"
    )


_DEFAULT_FILE = "access.toml"


def new_key(
    plan: Annotated[str, PLAN, "The plan of the key."],
    access: Annotated[str, ACCESS] = _DEFAULT_FILE,
) -> Outcome:
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


def check(form: PlainForm, access: Annotated[str, ACCESS] = _DEFAULT_FILE) -> Outcome:
    """Show what each plan of an access file allows.

    Example: srvstat access check --access access.toml
    """
    return show(summarize_access(read_access(access)), form.choose())


def summarize_access(access: Access) -> AccessCheck:
    """Return what each plan of an access file allows, in the order of the file."""
    keys = Counter(customer.plan.name for customer in access.customers)
    plans = tuple(
        PlanPermissions(
            name=plan.name,
            operations=plan.operations,
            ranges=plan.ranges,
            raw_history_days=plan.raw_history_days,
            requests_per_minute=plan.requests_per_minute,
            keys=keys[plan.name],
        )
        for plan in access.plans.values()
    )
    return AccessCheck(plans=plans, keys=len(access.customers))


def schema(
    name: Annotated[
        str,
        Parameter(
            f"A document: {', '.join(_DOCUMENTS)}.",
            "NAME",
            completes=tuple(_DOCUMENTS),
            is_argument=True,
        ),
    ],
) -> Outcome:
    """Print the JSON Schema of a document.

    Documents are the JSON that commands print besides the API's answers.

    Example: srvstat schema replay
    """
    if name not in _DOCUMENTS:
        raise UsageError(f"no document {wire.quote_value(name)}; choose {', '.join(_DOCUMENTS)}")
    return Outcome([_DOCUMENTS[name].encode_schema() + b"\n"])


def openapi() -> Outcome:
    """Print the OpenAPI document of the service.

    Its examples are answers of the demo snapshot.

    Example: srvstat openapi > openapi.json
    """
    return Outcome([read_openapi()])
