"""Turn groups of parameters into options, and define the options that several commands share."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import partial, wraps
from inspect import Parameter as SignatureParameter
from inspect import Signature, signature
from itertools import islice, pairwise, takewhile
from operator import methodcaller
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import typer
from typer.completion import get_completion_script  # type: ignore[attr-defined] # imported there without `as`
from typer.main import get_current_context  # type: ignore[attr-defined] # imported there without `as`

from srvstat.analysis.parameters import Completion, Parameter, Without
from srvstat.cli.output import Form, Outcome, create_screen, report, show_error
from srvstat.contract import errors, read_package_file
from srvstat.contract.errors import SnapshotError
from srvstat.contract.requests import NAMESPACES, Namespace
from srvstat.contract.time import YEAR_2001, InstantError, explain_instant_error, parse_shown_time
from srvstat.contract.windows import DEFAULT_RANGE, Range
from srvstat.files.paths import convert_errors
from srvstat.render.text import format_time
from srvstat.snapshot.read.snapshot import Snapshot, open_snapshot

if TYPE_CHECKING:
    from srvstat.operations.access import Plan


SNAPSHOT_VARIABLE = "SRVSTAT_SNAPSHOT"
DEFAULT_SNAPSHOT = "snapshot.db"

LIST_LENGTH = 50
"""The default number of servers listed in a table."""

_MAX_COMPLETIONS = 500
_MOST_METAVAR = 40
_MOST_NAMED = 10
_SERVERS_FOR_COMPLETION = 10_000
"""The maximum number of servers whose values are completed (about 0.1 s)."""
_PLAIN_WORD = re.compile(r"[\w.@%+-]+")
"""Text that needs no quoting in any shell."""

RANGES: tuple[str, ...] = get_args(Range)


def flatten(command: Callable[..., Outcome], variables: str = "") -> Callable[..., Outcome]:
    """Return a command for Typer, with parameter groups replaced by their parameters.

    A group is a dataclass; help shows its parameters under its `panel`. If `variables` is not
    empty, each option can also be set by an environment variable with this prefix. If the command
    raises an API error, the new command returns the error response.
    """
    groups: dict[str, tuple[Any, list[str]]] = {}
    taken: list[SignatureParameter] = []
    for each in signature(command).parameters.values():
        kind, *metadata = _split(each.annotation)
        if is_dataclass(kind):
            left_out = {name for one in metadata if isinstance(one, Without) for name in one.names}
            used = [one for one in fields(kind) if one.name not in left_out]
            groups[each.name] = kind, [one.name for one in used]
            panel = getattr(kind, "panel", None)
            taken += [_convert(one.name, one.type, one.default, variables, panel) for one in used]
        else:
            taken.append(_convert(each.name, each.annotation, each.default, variables))

    @wraps(command)
    def run(**values: Any) -> Outcome:
        given = dict(values)
        for name, (group, names) in groups.items():
            values[name] = group(**{field: values.pop(field) for field in names})
        try:
            return command(**values)
        except errors.ApiError as error:
            return _show_error(error, given | values)

    run.__signature__ = Signature(taken)  # type: ignore[attr-defined] # Typer reads it
    return run


def _show_error(error: errors.ApiError, values: Mapping[str, Any]) -> Outcome:
    """Return the outcome of a command that raised an API error. `values` are its arguments."""
    # Imported here: only errors need it.
    from srvstat.cli.hints import find_hint  # noqa: PLC0415

    given = [values["new"], values["old"]] if "old" in values else [values.get("snapshot")]
    identifiers = values.get("identifiers") or [values.get("identifier") or ""]
    paths = (find_snapshot(path) for path in given)
    error.reason += find_hint(error, paths, identifiers, values)
    # What the API calls a field is an option or a file here.
    field, _, problem = error.reason.partition(": ")
    request = values.get("request")
    places = {"body": request} if request else {"by": "--by", "range": "--range"}
    if place := places.get(field):
        error.reason = f"{place}: {problem}"
    form = values.get("form")
    if form is None and not values.get("json"):
        report(f"error: {error.reason}")
        return Outcome(exit_code=error.exit_code)
    return show_error(error, Form.JSON if form is None else form.choose())


def _split(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)


def _convert(
    name: str, annotation: Any, default: Any, variables: str, panel: str | None = None
) -> SignatureParameter:
    """Return a parameter as Typer declares it. A string in the annotation replaces its help."""
    kind, *metadata = _split(annotation)
    for one in metadata:
        if isinstance(one, Parameter):
            text = next((text for text in metadata if isinstance(text, str)), one.help)
            info = _build_info(name, kind, one, text)
            info.rich_help_panel = None if one.is_argument else panel
            has_variable = variables and not one.has_spaces
            info.envvar = f"{variables}{name.upper()}" if has_variable else None
            kind = Annotated[kind, info]
    return SignatureParameter(
        name, SignatureParameter.KEYWORD_ONLY, default=default, annotation=kind
    )


def _build_info(name: str, kind: Any, parameter: Parameter, text: str) -> Any:
    kinds = (kind, *get_args(kind))  # also finds the Literal in `Literal[…] | None`
    choices = [each for one in kinds if get_origin(one) is Literal for each in get_args(one)]
    listed = "|".join(choices)
    if len(listed) > _MOST_METAVAR:  # a terminal of 60 columns would break it
        text, listed = f"{text} One of {', '.join(choices)}.", name.upper()
    settings: dict[str, Any] = {
        "help": text,
        "hidden": parameter.is_hidden,
        "metavar": parameter.metavar or listed or None,
        "autocompletion": _build_completion(parameter.completes),
    }
    if parameter.is_argument:
        return typer.Argument(**settings)
    if parameter.least is not None:
        settings |= {"min": parameter.least, "max": parameter.most}
    names = parameter.names or (f"--{name.replace('_', '-')}",)
    return typer.Option(*names, **settings)


def _build_completion(completes: Sequence[str] | Completion) -> Callable[..., list[str]] | None:
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        values = completes
        if isinstance(completes, str):
            try:
                values = _COMPLETIONS[completes](ctx, incomplete)
            except errors.SrvstatError:
                return []
        return [value for value in values if value.startswith(incomplete)]

    return complete if completes else None


def _complete_identifier(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete an identifier in --snapshot, in NEW of `snapshot diff` or in the default file."""
    by: Namespace = "cfxId" if ctx.params.get("by") == "cfxId" else "id"
    searches: list[tuple[str, Namespace, str]] = [("", by, incomplete)]
    for namespace in NAMESPACES:
        prefix = f"{namespace}:"
        if incomplete.startswith(prefix):
            searches = [(prefix, namespace, incomplete.removeprefix(prefix))]
        elif incomplete and prefix.startswith(incomplete):
            searches.append((prefix, namespace, ""))
    with open_chosen(ctx.params.get("snapshot") or ctx.params.get("new")) as snapshot:
        found = [
            prefix + name
            for prefix, namespace, start in searches
            for name in islice(_iter_identifiers(snapshot, namespace, start), _MAX_COMPLETIONS + 1)
        ]
    # A shell completes the common prefix of all identifiers, so offer all or none.
    return found if len(found) <= _MAX_COMPLETIONS else []


def _iter_identifiers(snapshot: Snapshot, by: Namespace, start: str) -> Iterator[str]:
    return takewhile(methodcaller("startswith", start), snapshot.iter_identifiers(by, start))


def _complete_plan(ctx: typer.Context, _incomplete: str) -> list[str]:
    """Complete the name of a plan in the access file that the command line names."""
    from srvstat.operations.access import read_access  # noqa: PLC0415 - takes 9 ms

    return list(read_access(ctx.params.get("access") or "").plans)


def _complete_value(kind: str, ctx: typer.Context, _incomplete: str) -> list[str]:
    """Complete a value that servers of the snapshot have. Omits values that need quotes."""
    from srvstat.analysis.selection import count_record_values  # noqa: PLC0415 - answers need none

    with open_chosen(ctx.params.get("snapshot") or ctx.params.get("path")) as snapshot:
        counts = count_record_values(snapshot, most=_SERVERS_FOR_COMPLETION)
    return sorted(filter(_PLAIN_WORD.fullmatch, getattr(counts, kind)))


_COMPLETIONS: Mapping[str, Callable[[typer.Context, str], list[str]]] = {
    "identifier": _complete_identifier,
    "plan": _complete_plan,
    **{kind: partial(_complete_value, kind) for kind in ("games", "regions", "tags")},
}


_SNAPSHOT_HELP = f"The snapshot [default: ${SNAPSHOT_VARIABLE}, else ./{DEFAULT_SNAPSHOT}]."
SnapshotOption = Annotated[str | None, Parameter(_SNAPSHOT_HELP, "PATH", ("--snapshot", "-s"))]
PathArgument = Annotated[str | None, Parameter(_SNAPSHOT_HELP, "PATH", is_argument=True)]
RANGE = Parameter(
    f"The length of the window [default: {DEFAULT_RANGE}].", "|".join(RANGES), completes=RANGES
)
RangeOption = Annotated[str | None, RANGE]
AtOption = Annotated[
    str | None,
    Parameter(
        "Answer as of this time, such as 2026-02-01T12:00Z, and ignore later observations"
        " [default: the end of the snapshot].",
        "TIME",
    ),
]
EndOption = Annotated[
    str | None,
    Parameter(
        "End the snapshot at this time and leave out later observations [default: the latest"
        " observation].",
        "TIME",
        ("--at", "--as-of"),
    ),
]
PLAN = Parameter("Apply the limits of this plan in the access file.", "NAME", completes="plan")
PlanOption = Annotated[str | None, PLAN]
ACCESS = Parameter("The access file, with plans and keys.", "FILE")
AccessOption = Annotated[str | None, ACCESS]


@dataclass(frozen=True)
class PlanOptions:
    """Options for the plan whose limits apply."""

    panel = "Access"

    plan: PlanOption = None
    access: AccessOption = None

    def find_plan(self) -> "Plan | None":
        """Return the plan in the access file, or None (no limits) without these options.

        Raises UsageError for one option without the other or for an unknown plan, and SourceError
        for an invalid access file.
        """
        if self.plan is None and self.access is None:
            return None
        if self.access is None:
            raise errors.ParameterError("{plan} requires {access} FILE")
        if self.plan is None:
            raise errors.ParameterError("{access} requires {plan} NAME")
        # Importing the reader of access files takes 9 ms.
        from srvstat.operations.access import read_access  # noqa: PLC0415

        return read_access(self.access).get_plan(self.plan)


def pick_servers(least: int, most: int) -> list[str]:
    """Let the user pick servers on a terminal, and return their identifiers.

    Elsewhere, return none.

    Raises SystemExit if the user cancels, and SnapshotError if the snapshot is unusable.
    """
    context, is_terminal = get_current_context(), all(map(os.isatty, range(3)))
    has_cursor = os.environ.get("TERM", "dumb") != "dumb"
    if not is_terminal or not has_cursor or context.params.get("json"):
        return []
    from srvstat.cli.picker import pick, show_command  # noqa: PLC0415 - it needs Rich

    with open_chosen(context.params.get("snapshot")) as snapshot:
        picked = pick(snapshot, least, most)
    if context.params.get("by") is not None or any(one.startswith("-") for one in picked):
        picked = [f"id:{one}" for one in picked]
    if picked:
        show_command([*context.obj, *picked])
    return picked


def name_servers() -> str:
    """Return the hint that lists available servers."""
    with suppress(SnapshotError), open_chosen(get_current_context().params.get("snapshot")) as file:
        ids = [*islice(file.iter_identifiers("id"), _MOST_NAMED + 1)]
        if len(ids) <= _MOST_NAMED:
            return f"the snapshot has {', '.join(ids)}"
    return "srvstat servers lists them"


LimitOption = Annotated[
    int | None,
    Parameter(
        f"List at most N servers [default: {LIST_LENGTH} in a table, else all].",
        "N",
        ("--limit", "-n"),
        least=1,
    ),
]
OUTPUT = Parameter("The file to write; - is standard output.", "FILE|-", ("--output", "-o"))
OutputOption = Annotated[str | None, OUTPUT]
OverwriteOption = Annotated[bool, Parameter("Replace the output if it exists.")]
QuietOption = Annotated[
    bool, Parameter("Show only warnings: no progress bar and no summary.", names=("--quiet", "-q"))
]
ExplainOption = Annotated[
    bool, Parameter("Explain where each number comes from, as text or with --json as JSON.")
]


def find_snapshot(given: str | None) -> str:
    """Return the path of the snapshot: the given path, else the environment's, else the default.

    Raises SnapshotError if there is none.
    """
    if given is not None:
        return given
    if path := os.environ.get(SNAPSHOT_VARIABLE):
        return path
    with convert_errors(DEFAULT_SNAPSHOT, SnapshotError):
        try:
            os.lstat(DEFAULT_SNAPSHOT)
        except FileNotFoundError:
            raise SnapshotError(
                f"no snapshot; use --snapshot PATH, set {SNAPSHOT_VARIABLE}, or run in a directory"
                f" with {DEFAULT_SNAPSHOT} (srvstat demo creates one)"
            ) from None
    return DEFAULT_SNAPSHOT


def open_chosen(given: str | None) -> AbstractContextManager[Snapshot]:
    """Open the snapshot of --snapshot, or else the default snapshot.

    Raises SnapshotError if it is missing or unusable.
    """
    return closing(open_snapshot(find_snapshot(given)))


def choose_snapshot(path: str | None, option: str | None) -> str:
    """Return the snapshot of PATH or --snapshot, or else the result of `find_snapshot`.

    Raises UsageError if both are given, and SnapshotError if there is none.
    """
    if path is not None and option is not None:
        raise errors.UsageError("PATH and --snapshot can't be combined")
    return find_snapshot(option if path is None else path)


def parse_instant_option(option: str, text: str | None) -> int | None:
    """Parse an option's time to Unix milliseconds. Warns if it looks like seconds.

    Raises UsageError if it is not a time.
    """
    if text is None:
        return None
    try:
        instant = parse_shown_time(text)
    except InstantError as error:
        problem = explain_instant_error(text, error, "use the form 2026-02-01T12:00Z")
        field = f"{{{option.removeprefix('--')}}}"
        raise errors.ParameterError(f"{field}: {{problem}}", problem=problem) from None
    if text.isdecimal() and instant < YEAR_2001:
        report(
            f"warning: {option} {text}: read as milliseconds, {format_time(instant)};"
            " if these are seconds, multiply by 1000"
        )
    return instant


def choose_limit(limit: int | None, form: Form) -> int | None:
    """Return the maximum number of servers to list, or None for all of them."""
    return LIST_LENGTH if limit is None and form is Form.TABLE else limit


SNAPSHOT_ENDINGS = (".db", ".sqlite", ".sqlite3")
NDJSON_ENDINGS = (".ndjson", ".jsonl")

_OTHER_ENDINGS = """
.7z .arrow .avif .avro .bmp .bz2 .csv .doc .docx .duckdb .eps .feather .gif .gz .har .htm .html
.jpeg .jpg .json .md .ods .orc .parquet .pdf .png .ppt .pptx .ps .rtf .sql .svg .tar .tex .tiff
.toml .tsv .txt .webp .xls .xlsx .xml .xz .yaml .yml .zip .zst
"""
_KNOWN_ENDINGS = frozenset((*_OTHER_ENDINGS.split(), *SNAPSHOT_ENDINGS, *NDJSON_ENDINGS))


def check_ending(path: str | None, *endings: str, hint: str = "") -> None:
    """Check that an output's extension does not belong to another format.

    `endings`: the formats that are written; without any, the output is a folder. `hint`: appended
    to the error.

    Raises UsageError if the extension belongs to another format.
    """
    ending = os.path.splitext(path or "")[1].lower()
    if ending in _KNOWN_ENDINGS.difference(endings):
        listed = " or ".join(filter(None, (", ".join(endings[:-1]), *endings[-1:])))
        problem = (
            f"the output must end in {listed}"
            if endings
            else f"the output is a folder; give a name without {ending}"
        )
        raise errors.UsageError(f"{path}: {problem}{hint}")


_VARIABLE = "_SRVSTAT_COMPLETE"

_ZSH_END = "compdef _srvstat_completion srvstat"
_ZSH_END_OF_BOTH = f"""if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _srvstat_completion "$@"  # a file in $fpath is called to complete
else
  {_ZSH_END}
fi"""
"""Replaces the end of Typer's zsh script, which works only with `source`.

With this end, a script in $fpath also completes on first use.
"""

_Shell = Literal["bash", "zsh", "fish"]


def completion(
    shell: Annotated[
        _Shell, Parameter("The shell of the script: bash, zsh or fish.", "SHELL", is_argument=True)
    ],
) -> Outcome:
    """Print a shell completion script.

    The script completes commands, options, plans and the servers of the snapshot.

    Example: srvstat completion bash >> ~/.bashrc
    """
    script: str = get_completion_script(prog_name="srvstat", complete_var=_VARIABLE, shell=shell)
    if shell == "zsh":
        script = script.replace(_ZSH_END, _ZSH_END_OF_BOTH)
    return Outcome([f"{script}\n".encode()])


def help(  # noqa: A001 - the name of the command
    topic: Annotated[  # noqa: ARG001 - replace_help has the others
        list[str] | None,
        Parameter("A command, or `terms`.", "TOPIC", completes=("terms",), is_argument=True),
    ] = None,
) -> Outcome:
    """Explain a command or the table columns.

    Example: srvstat help terms
    """
    terms = read_package_file("cli/terms.txt").decode().rstrip()
    return Outcome([create_screen().render(terms).encode()])


def replace_help(arguments: list[str]) -> list[str]:
    """Return `COMMAND --help` for `help COMMAND`, and other arguments unchanged."""
    topics = arguments[1:]
    if arguments[:1] != ["help"] or topics == ["terms"] or any(one[:1] == "-" for one in topics):
        return arguments
    return [*topics, "--help"]


def join_bash_words() -> str:
    """Join words in the environment that bash has split at colons, such as `cfxId:abc`.

    Returns the current word up to its last colon, which bash keeps and completions must omit.
    """
    if os.environ.get(_VARIABLE) != "complete_bash":
        return ""
    words = os.environ["COMP_WORDS"].split("\n")[: int(os.environ["COMP_CWORD"]) + 1]
    joined, is_joined = words[:1], False
    for before, word in pairwise(words):
        is_joined = bool(word) and (_is_colon(before) or _is_colon(word))
        joined[-1:] = [joined[-1] + word] if is_joined else [joined[-1], word]
    if len(joined) < len(words):
        os.environ.update(COMP_WORDS="\n".join(joined), COMP_CWORD=str(len(joined) - 1))
    return joined[-1][: joined[-1].rindex(":") + 1] if is_joined else ""


def _is_colon(word: str) -> bool:
    return bool(word) and not word.strip(":")
