"""Read plans and keys from an access file, and add keys (D15).

Only SHA-256 checksums are stored.
"""

import fcntl
import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from srvstat.contract import models, wire
from srvstat.contract.errors import (
    FeatureNotAvailableError,
    OutputError,
    SourceError,
    SrvstatError,
    UsageError,
)
from srvstat.contract.requests import CompareRequest, ServerReference
from srvstat.contract.time import format_instant
from srvstat.contract.windows import DAY_MS, Range, Window, find_window
from srvstat.files.paths import convert_errors
from srvstat.files.toml import parse_toml

Operation = Literal["get-server", "compare-servers"]

MAX_ACCESS_BYTES = 4 << 20

_PLAN_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MESSAGES = {"dict_type": "must be a table", "model_type": "must be a table"}
_ACCESS_REMEDY = "`srvstat demo` writes an example"


class _PlanTable(models.ContractModel):
    operations: models.Choices[Operation]
    ranges: models.Choices[Range]
    raw_history_days: models.WholeNumber = 0
    requests_per_minute: models.PositiveNumber | None = None


class _KeyTable(models.ContractModel):
    sha256: models.Sha256
    plan: str


class _AccessFile(models.ContractModel):
    plans: dict[str, _PlanTable]
    keys: models.Members[_KeyTable] = ()


class Plan(_PlanTable):
    """The operations and ranges that a customer may use, and how often.

    - `raw_history_days`: the permitted depth of raw history, in days before the snapshot's as_of;
      `ranges` do not grant it.
    - `requests_per_minute`: the rate limit, or None for no limit.
    """

    name: str

    def check_request(self, request: ServerReference | CompareRequest) -> None:
        """Check that the plan includes a request.

        Raises FeatureNotAvailableError for an operation or a range that it does not include.
        """
        if isinstance(request, ServerReference):
            self._check_included("get-server", self.operations, "operation")
        else:
            self._check_included("compare-servers", self.operations, "operation")
            self._check_included(request.range, self.ranges, "range")

    def check_raw_history(self) -> None:
        """Check that the plan includes raw history.

        Raises FeatureNotAvailableError if it includes none.
        """
        if not self.raw_history_days:
            raise FeatureNotAvailableError(f"plan {self.name} does not include raw history")

    def check_history(self, window: Window, as_of: int) -> None:
        """Check that the plan includes the raw history of a window, in a snapshot as of `as_of`.

        Does not consider the plan's ranges and operations.

        Raises FeatureNotAvailableError if the window begins too early.
        """
        self.check_raw_history()
        earliest = as_of - self.raw_history_days * DAY_MS
        if window.start < earliest:
            days = self.raw_history_days
            raise FeatureNotAvailableError(
                f"plan {self.name} includes {days:,} {'day' if days == 1 else 'days'} of raw"
                " history, but the window begins earlier; use --from"
                f" {format_instant(max(earliest, 0))} or later"
            )

    def check_timeline(self, range: Range, as_of: int) -> None:
        """Check that the plan includes a chart over a range, in a snapshot as of `as_of`.

        The plan must include both the range and its raw history, because most steps of a chart are
        as short as the polling interval, and their averages are single observations.

        Raises FeatureNotAvailableError if it does not include them.
        """
        self._check_included(range, self.ranges, "range")
        self.check_history(find_window(range, as_of), as_of)

    def _check_included(self, name: str, included: tuple[str, ...], kind: str) -> None:
        if name not in included:
            rest = f"; it includes {', '.join(included)}" if included else f" or any other {kind}"
            raise FeatureNotAvailableError(f"plan {self.name} does not include {kind} {name}{rest}")


@dataclass(frozen=True, slots=True)
class Access:
    """Plans by name, and plans by a key's SHA-256 in hexadecimal."""

    plans: Mapping[str, Plan]
    keys: Mapping[str, Plan] = field(repr=False)

    def get_plan(self, name: str) -> Plan:
        """Return the plan with a name. Raises UsageError if it does not exist."""
        if name not in self.plans:
            raise UsageError(f"no plan {wire.quote_value(name)}; {_list_plans(self.plans)}")
        return self.plans[name]

    def find_plan(self, key: bytes) -> Plan | None:
        """Return the plan of a key, or None if the key is unknown.

        The duration of the look-up may reveal part of the checksum, which is harmless: a key can't
        be derived from its checksum.
        """
        return self.keys.get(hashlib.sha256(key).hexdigest())


def read_access(path: str) -> Access:
    """Read an access file.

    Raises SourceError, with the line and the location of the problem.
    """
    with _open_regular_file(path, os.O_RDONLY, SourceError) as descriptor:
        return _parse_content(path, _read_content(path, descriptor))


def generate_key() -> str:
    """Return a new random key of 256 bits."""
    from secrets import token_urlsafe  # noqa: PLC0415 - slow to import, and rarely used

    return f"srvstat_{token_urlsafe(32)}"


def add_key(path: str, plan: str, key: str) -> None:
    """Append a key to an access file atomically, without changing the rest of the file.

    Waits while another process adds a key.

    Raises SourceError if the file is invalid or can't hold the key, UsageError for an unknown plan,
    and OutputError if the file can't be written.
    """
    with _open_regular_file(path, os.O_RDWR | os.O_APPEND, OutputError) as descriptor:
        with _convert_errors(path, OutputError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        content = _read_content(path, descriptor)
        access = _parse_content(path, content)
        access.get_plan(plan)
        if access.find_plan(key.encode("utf-8")):
            raise SourceError(f"{path}: already has this key")
        sha256 = hashlib.sha256(key.encode("utf-8")).hexdigest()
        line_end = "" if content.endswith(b"\n") else "\n"
        addition = f'{line_end}\n[[keys]]\nsha256 = "{sha256}"\nplan = "{plan}"\n'.encode()
        _check_result(path, content + addition, key)
        with _convert_errors(path, OutputError):
            _append(path, descriptor, len(content), addition)


def _check_result(path: str, content: bytes, key: str) -> None:
    """Check that the new content is a valid access file that holds the key."""
    if len(content) > MAX_ACCESS_BYTES:
        raise SourceError(f"{path}: would exceed {MAX_ACCESS_BYTES:,} bytes")
    with suppress(SourceError):
        if _parse_content(path, content).find_plan(key.encode("utf-8")):
            return
    raise SourceError(
        f"{path}: a key can't be appended; write the existing keys as [[keys]] tables, not as"
        " keys = […]"
    )


def _append(path: str, descriptor: int, size: int, addition: bytes) -> None:
    """Append to a file. If this fails, restore its size."""
    try:
        with open(descriptor, "ab", closefd=False) as file:
            file.write(addition)
        os.fsync(descriptor)
        _check_not_replaced(path, descriptor)
    except BaseException:
        os.ftruncate(descriptor, size)
        raise


def _check_not_replaced(path: str, descriptor: int) -> None:
    if not os.path.samestat(os.stat(path), os.fstat(descriptor)):
        raise OutputError(f"{path}: was replaced while the key was added; try again")


@contextmanager
def _open_regular_file(path: str, flags: int, error_class: type[SrvstatError]) -> Iterator[int]:
    """Open a regular file and yield its descriptor. System errors raise `error_class`."""
    if not path:
        raise SourceError("access file: empty; give a file name")
    with _convert_errors(path, error_class):
        # Without O_NONBLOCK, opening a FIFO would wait for its other end.
        descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            kind = "a directory" if stat.S_ISDIR(mode) else "a pipe, socket or device"
            raise SourceError(f"{path}: {kind}, not an access file")
        yield descriptor
    finally:
        os.close(descriptor)


def _convert_errors(path: str, error_class: type[SrvstatError]) -> AbstractContextManager[None]:
    return convert_errors(path, error_class, name_class=SourceError, remedy=_ACCESS_REMEDY)


def _read_content(path: str, descriptor: int) -> bytes:
    with _convert_errors(path, SourceError), open(descriptor, "rb", closefd=False) as file:
        content = file.read(MAX_ACCESS_BYTES + 1)
    if len(content) > MAX_ACCESS_BYTES:
        raise SourceError(f"{path}: more than {MAX_ACCESS_BYTES:,} bytes")
    return content


def _parse_content(path: str, content: bytes) -> Access:
    return parse_toml(path, content, _parse_tables)


def _parse_tables(values: dict[str, Any]) -> Access:
    return _build_access(models.validate(_AccessFile, values, _MESSAGES))


def _build_access(file: _AccessFile) -> Access:
    """Check names and references, and map each key to its plan.

    Raises InvalidValueError for the first problem.
    """
    plans = {name: _build_plan(name, table) for name, table in file.plans.items()}
    keys: dict[str, Plan] = {}
    for position, key in enumerate(file.keys):
        if key.plan not in plans:
            location = ("keys", position, "plan")
            raise models.InvalidValueError(location, f": unknown plan; {_list_plans(plans)}")
        if key.sha256 in keys:
            problem = f": the same as keys[{list(keys).index(key.sha256)}].sha256"
            raise models.InvalidValueError(("keys", position, "sha256"), problem)
        keys[key.sha256] = plans[key.plan]
    return Access(plans, keys)


def _list_plans(plans: Mapping[str, Plan]) -> str:
    return f"the file has {', '.join(plans) or 'no plans'}"


def _build_plan(name: str, table: _PlanTable) -> Plan:
    if not _PLAN_NAME.fullmatch(name):
        problem = ": a plan's name must be 1 to 64 letters, digits, hyphens or underscores"
        raise models.InvalidValueError(("plans", name), problem)
    return Plan(name=name, **dict(table))
