"""Define the errors of srvstat, one class for each kind.

The command line maps each class to an exit code, and the HTTP service maps it to a status. All
other code only raises errors: it never prints them or exits.
"""

import copyreg
import re
import traceback
from collections.abc import Callable
from typing import ClassVar, Literal

ErrorCode = Literal[
    "INVALID_REQUEST",
    "GATEWAY_UNAUTHORIZED",
    "FEATURE_NOT_AVAILABLE",
    "SERVER_NOT_FOUND",
    "RATE_LIMITED",
    "INTERNAL_ERROR",
]
"""All error codes of the API (specification, section 7)."""


class SrvstatError(Exception):
    """The base class of all errors that a user can understand and act on.

    `reason` is one line that says where the problem is, what it is, and how to fix it if that is
    known. It may quote input: escape it before printing it.
    """

    exit_code: ClassVar[int]

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        # By default, unpickling calls the class with the reason only. Subclasses take other
        # arguments, so unpickling would fail and a parent waiting for a worker would hang.
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # type: ignore[attr-defined]  # typeshed lacks it


class UsageError(SrvstatError, ValueError):
    """An argument or option is invalid, or arguments conflict.

    See SrvstatError for `reason`.
    """

    exit_code = 2


class ParameterError(UsageError):
    """A parameter has an invalid value, or parameters conflict.

    In `problem`, `{name}` is the Python name of a parameter, or a key of `values`. Each interface
    substitutes its own name, such as an option.
    """

    def __init__(self, problem: str, /, **values: str) -> None:
        self._problem, self._values = problem, values
        super().__init__(self.describe(str))

    def describe(self, find_name: Callable[[str], str]) -> str:
        """Return the message. `find_name` maps a Python name to the interface's name."""

        def fill(field: re.Match[str]) -> str:
            return self._values[field[1]] if field[1] in self._values else find_name(field[1])

        return re.sub(r"\{(\w+)\}", fill, self._problem)


class MissingLibraryError(UsageError, ImportError):
    """A format needs a library that is not installed."""


class SnapshotError(SrvstatError):
    """The snapshot is missing, damaged, not a snapshot, or in a format this version can't read.

    See SrvstatError for `reason`.
    """

    exit_code = 3


class OutputError(SrvstatError):
    """Standard output or an output file could not be written.

    See SrvstatError for `reason`.
    """

    exit_code = 4


class DifferenceError(SrvstatError):
    """A check failed: `replay`, `when`, `diff`, `verify --expect` or `events --exit-code`."""

    exit_code = 5


class SourceError(SrvstatError):
    """An input file was refused: missing, unreadable, truncated or invalid.

    See SrvstatError for `reason`.
    """

    exit_code = 6


class EngineError(SrvstatError):
    """An engine for large data failed, or the limit of processes and threads was reached."""

    exit_code = 7


class ApiError(SrvstatError):
    """An error response of the API.

    - `code`, `http_status`, `message`: fixed by the API.
    - `reason`: explains the error, and is never part of the response.

    >>> try:
    ...     snapshot.get("nobody")
    ... except srvstat.ApiError as error:
    ...     error.code, error.reason
    ('SERVER_NOT_FOUND', 'no server with id nobody')
    """

    code: ClassVar[ErrorCode]
    http_status: ClassVar[int]
    message: ClassVar[str]

    def __str__(self) -> str:
        return f"{self.code}: {self.message} ({self.reason})"


class InvalidRequestError(ApiError):
    """The request is invalid: its path, query, headers or body, or a server that is given twice."""

    code = "INVALID_REQUEST"
    http_status = 400
    message = "Invalid request"
    exit_code = 40


class GatewayUnauthorizedError(ApiError):
    """The gateway's key is missing or invalid."""

    code = "GATEWAY_UNAUTHORIZED"
    http_status = 401
    message = "Unauthorized"
    exit_code = 41


class FeatureNotAvailableError(ApiError):
    """The plan does not include the feature or range."""

    code = "FEATURE_NOT_AVAILABLE"
    http_status = 403
    message = "Feature not available for this subscription"
    exit_code = 43


class ServerNotFoundError(ApiError):
    """The server is unknown or not public; callers can't tell which."""

    code = "SERVER_NOT_FOUND"
    http_status = 404
    message = "Server not found"
    exit_code = 44


class RateLimitedError(ApiError):
    """The request exceeds a rate limit.

    `retry_after`: the time to wait, in whole seconds.
    """

    code = "RATE_LIMITED"
    http_status = 429
    message = "Rate limit exceeded"
    exit_code = 49

    def __init__(self, reason: str, retry_after: int = 1) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class InternalError(ApiError):
    """An unexpected error in the service."""

    code = "INTERNAL_ERROR"
    http_status = 500
    message = "Internal server error"
    exit_code = 50


THREAD_LIMIT = "the limit of processes and threads is reached; raise it with ulimit -u"

_NO_MEMORY = re.compile(
    "error return without exception set|returned NULL without setting an exception"
    "|can't allocate (read )?lock|\\[digital envelope routines\\]"
)
"""Matches errors, besides MemoryError, that NumPy, Python and OpenSSL raise without memory."""


def describe_unexpected(error: Exception) -> str:
    """Explain an unexpected error: a system limit, or a bug."""
    if isinstance(error, MemoryError) or _NO_MEMORY.search(str(error)):
        return "out of memory; free some, or raise the limit with ulimit -v"
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        return THREAD_LIMIT
    place = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"a bug in srvstat: {type(error).__name__} in {place.name}, {place.filename}"
        f" line {place.lineno}; please report it"
    )
