"""Plans and keys: who may ask what (D15). A key itself is never kept; its SHA-256 is."""

import fcntl
import hashlib
import hmac
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from srvstat.contract import wire
from srvstat.contract.errors import (
    FeatureNotAvailableError,
    OutputError,
    SourceError,
    SrvstatError,
    UsageError,
)
from srvstat.contract.models import (
    Choices,
    ContractModel,
    InvalidValueError,
    Members,
    PositiveNumber,
    Sha256,
    WholeNumber,
    find_duplicate,
    format_location,
    validate,
)
from srvstat.contract.ranges import Range
from srvstat.contract.requests import CompareRequest, ServerReference
from srvstat.files.toml_lines import TomlError, find_line, read_toml

Operation = Literal["get-server", "compare-servers"]

MAX_ACCESS_BYTES = 4 << 20

_PLAN_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
# A key that somebody put where its digest belongs must not be repeated in an error.
_MAYBE_KEY = re.compile(r"[A-Za-z0-9_+/=-]{31,}")
_MESSAGES = {"dict_type": "must be a table", "model_type": "must be a table"}
_NO_DIGEST = bytes(32)
_MAKE_ONE = "docs/access.md shows how to write one, and `srvstat demo` writes one"


class _PlanTable(ContractModel):
    operations: Choices[Operation]
    ranges: Choices[Range]
    raw_history_days: WholeNumber = 0
    requests_per_minute: PositiveNumber | None = None


class _KeyTable(ContractModel):
    sha256: Sha256
    plan: str


class _AccessFile(ContractModel):
    plans: dict[str, _PlanTable]
    keys: Members[_KeyTable] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What a customer may ask for, and how often; no limit of requests where it is None.

    `raw_history_days` says how far back raw history goes. A range that is allowed here gives no
    right to it.
    """

    name: str
    operations: tuple[Operation, ...]
    ranges: tuple[Range, ...]
    raw_history_days: int
    requests_per_minute: int | None

    def check_request(self, request: ServerReference | CompareRequest) -> None:
        """Judge a request.

        Raises FeatureNotAvailableError where the plan has no such operation or range.
        """
        if isinstance(request, ServerReference):
            self._must_have("get-server", self.operations)
        else:
            self._must_have("compare-servers", self.operations)
            self._must_have(request.range, self.ranges)

    def _must_have(self, asked: str, allowed: tuple[str, ...]) -> None:
        if asked not in allowed:
            those = f"only {', '.join(allowed)}" if allowed else "nothing of the kind"
            raise FeatureNotAvailableError(f"the plan {self.name} has no {asked}, {those}")


class Customer(NamedTuple):
    """One key, as its digest, and its plan."""

    sha256: bytes
    plan: Plan


@dataclass(frozen=True, slots=True)
class Access:
    """The plans by name, and the customers who have one."""

    plans: Mapping[str, Plan]
    customers: tuple[Customer, ...] = field(repr=False)
    _by_sha256: Mapping[bytes, Customer] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_sha256 = {customer.sha256: customer for customer in self.customers}
        object.__setattr__(self, "_by_sha256", by_sha256)  # frozen for everybody else

    def get_plan(self, name: str) -> Plan:
        """Return a plan.

        Raises UsageError where there is none of that name.
        """
        if name not in self.plans:
            those = f"there are {', '.join(self.plans)}" if self.plans else "there is none at all"
            raise UsageError(f"no plan {wire.quote_value(name)}; {those}")
        return self.plans[name]

    def find_customer(self, key: bytes) -> Customer | None:
        """Return whose key it is, however many there are, with the same work for a wrong one.

        At most the time of the look-up tells something of a digest. That helps nobody to a key:
        no key is found by its digest, nor one whose digest comes near to another.
        """
        sha256 = hashlib.sha256(key).digest()
        customer = self._by_sha256.get(sha256)
        is_known = hmac.compare_digest(customer.sha256 if customer else _NO_DIGEST, sha256)
        return customer if is_known else None


def read_access(path: str) -> Access:
    """Read an access file.

    Raises SourceError, with the line and the place of what is wrong.
    """
    with _opened(path, os.O_RDONLY, SourceError) as descriptor:
        content = _content(path, descriptor)
    return _judged(path, content)


def generate_key() -> str:
    """Return a random key, which nobody can guess."""
    from secrets import token_urlsafe  # noqa: PLC0415 - who reads an access file need not wait

    return f"srvstat_{token_urlsafe(32)}"


def add_key(path: str, plan: str, key: str) -> None:
    """Add a key to an access file, at its end: the file stays in place with all that is its own.

    Whoever adds another key at the same time waits. Either the whole key is added, or nothing.

    Raises SourceError where the file is refused or could not take the key, UsageError for an
    unknown plan, OutputError where it can't be written.
    """
    with _opened(path, os.O_RDWR | os.O_APPEND, OutputError) as descriptor:
        with _naming(path, OutputError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        content = _content(path, descriptor)
        access = _judged(path, content)
        access.get_plan(plan)
        if access.find_customer(key.encode("utf-8")):
            raise SourceError(f"{path}: has this key already")
        addition = _key_table(content, plan, key)
        _judge_growth(path, content + addition, key)
        with _naming(path, OutputError):
            _append(path, descriptor, len(content), addition)


def _key_table(content: bytes, plan: str, key: str) -> bytes:
    sha256 = hashlib.sha256(key.encode("utf-8")).hexdigest()
    line_end = "" if content.endswith(b"\n") else "\n"
    return f'{line_end}\n[[keys]]\nsha256 = "{sha256}"\nplan = "{plan}"\n'.encode()


def _judge_growth(path: str, grown: bytes, key: str) -> None:
    """Refuse a file that would not be an access file with the key in it."""
    if len(grown) > MAX_ACCESS_BYTES:
        raise SourceError(f"{path}: would have more than {MAX_ACCESS_BYTES:,} bytes")
    try:
        customer = _judged(path, grown).find_customer(key.encode("utf-8"))
    except SourceError:
        customer = None
    if customer is None:
        raise SourceError(
            f"{path}: a key can't be added at its end; write those it has as [[keys]] tables, not"
            " as keys = […]"
        )


def _append(path: str, descriptor: int, size: int, addition: bytes) -> None:
    """Write at the end of a file, and take it back where not all of it gets there."""
    try:
        rest = memoryview(addition)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
        _must_stand(path, descriptor)
    except BaseException:
        os.ftruncate(descriptor, size)
        raise


def _must_stand(path: str, descriptor: int) -> None:
    if not os.path.samestat(os.stat(path), os.fstat(descriptor)):
        raise OutputError(f"{path}: was replaced while the key was added; try again")


@contextmanager
def _opened(path: str, flags: int, otherwise: type[SrvstatError]) -> Iterator[int]:
    """Open a regular file; what stands in the way raises `otherwise`."""
    if not path:
        raise SourceError("the name of the access file is empty; name a file")
    with _naming(path, otherwise):
        # Without O_NONBLOCK a FIFO would wait for its other end.
        descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            kind = "a directory" if stat.S_ISDIR(mode) else "a pipe, socket or device"
            raise SourceError(f"{path}: {kind}, not an access file")
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _naming(path: str, otherwise: type[SrvstatError]) -> Iterator[None]:
    """Name the file in what the system says against using it."""
    try:
        yield
    except FileNotFoundError:
        raise SourceError(f"{path}: no such file; {_MAKE_ONE}") from None
    except OSError as error:
        raise otherwise(f"{path}: {error.strerror or 'cannot be used'}") from None
    except ValueError:  # a NUL in the path
        raise SourceError(f"{path}: not a file name") from None


def _content(path: str, descriptor: int) -> bytes:
    with _naming(path, SourceError), open(descriptor, "rb", closefd=False) as file:
        content = file.read(MAX_ACCESS_BYTES + 1)
    if len(content) > MAX_ACCESS_BYTES:
        raise SourceError(f"{path}: more than {MAX_ACCESS_BYTES:,} bytes")
    return content


def _judged(path: str, content: bytes) -> Access:
    try:
        # One byte order mark is skipped, as in every other file that is read.
        text = content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SourceError(f"{path}, line {line}: not UTF-8") from None
    try:
        return _access(text)
    except TomlError as error:
        line, reason = error.line, str(error)
    except RecursionError:  # shallow enough to be read, and too deep to be looked into
        line, reason = 1, "nested too deeply"
    raise SourceError(f"{path}, line {line}: {_MAYBE_KEY.sub('…', reason)}")


def _access(text: str) -> Access:
    """Return what a text says.

    Raises TomlError, RecursionError.
    """
    try:
        return _linked(validate(_AccessFile, read_toml(text), _MESSAGES))
    except InvalidValueError as error:
        raise TomlError(find_line(text, error.location), error.reason) from None


def _linked(file: _AccessFile) -> Access:
    """Give each key its plan.

    Raises NotValidError.
    """
    plans = {name: _plan(name, table) for name, table in file.plans.items()}
    for position, key in enumerate(file.keys):
        if key.plan not in plans:
            those = ", ".join(plans) or "none at all"
            raise InvalidValueError(
                ("keys", position, "plan"), f": not one of the plans, which are {those}"
            )
    repeated = find_duplicate(tuple(key.sha256 for key in file.keys))
    if repeated is not None:
        first, again = repeated
        raise InvalidValueError(
            ("keys", again, "sha256"), f": the same as {format_location(('keys', first, 'sha256'))}"
        )
    return Access(
        plans, tuple(Customer(bytes.fromhex(key.sha256), plans[key.plan]) for key in file.keys)
    )


def _plan(name: str, table: _PlanTable) -> Plan:
    if not _PLAN_NAME.fullmatch(name):
        finding = ": a plan's name is 1 to 64 letters, digits, hyphens and underscores"
        raise InvalidValueError(("plans", name), finding)
    return Plan(
        name,
        table.operations,
        table.ranges,
        table.raw_history_days,
        table.requests_per_minute,
    )
