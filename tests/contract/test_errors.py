"""The six errors of the API, as the specification publishes them, and how a command ends (7)."""

import pytest

from srvstat.contract.errors import (
    ApiError,
    DifferenceError,
    FeatureNotAvailableError,
    GatewayUnauthorizedError,
    InternalError,
    InvalidRequestError,
    OutputError,
    RateLimitedError,
    ServerNotFoundError,
    SnapshotError,
    SourceError,
    SrvstatError,
    UsageError,
)
from srvstat.contract.responses import ErrorResponse

PUBLISHED = [
    (InvalidRequestError, "INVALID_REQUEST", 400, "Invalid request"),
    (GatewayUnauthorizedError, "GATEWAY_UNAUTHORIZED", 401, "Unauthorized"),
    (
        FeatureNotAvailableError,
        "FEATURE_NOT_AVAILABLE",
        403,
        "Feature not available for this subscription",
    ),
    (ServerNotFoundError, "SERVER_NOT_FOUND", 404, "Server not found"),
    (RateLimitedError, "RATE_LIMITED", 429, "Rate limit exceeded"),
    (InternalError, "INTERNAL_ERROR", 500, "Internal server error"),
]


def subclasses_of(error: type[SrvstatError]) -> set[type[SrvstatError]]:
    """Return the kinds of an error. The service's own have a status or a header of theirs alone."""
    found = {kind for kind in error.__subclasses__() if kind.__module__ == SrvstatError.__module__}
    return found.union(*map(subclasses_of, found))


def test_there_is_one_class_for_each_of_the_six_codes_and_no_other() -> None:
    found = {
        (kind, kind.code, kind.http_status, kind.message)
        for kind in subclasses_of(ApiError)
        if issubclass(kind, ApiError)
    }

    assert found == set(PUBLISHED)


@pytest.mark.parametrize("kind", [kind for kind, *_ in PUBLISHED])
def test_an_error_exits_with_the_first_and_the_last_digit_of_its_status(
    kind: type[ApiError],
) -> None:
    status = str(kind.http_status)

    assert str(kind.exit_code) == status[0] + status[-1]


BODIES = [
    (InvalidRequestError, '{"error":{"code":"INVALID_REQUEST","message":"Invalid request"}}'),
    (
        GatewayUnauthorizedError,
        '{"error":{"code":"GATEWAY_UNAUTHORIZED","message":"Unauthorized"}}',
    ),
    (
        FeatureNotAvailableError,
        (
            '{"error":{"code":"FEATURE_NOT_AVAILABLE",'
            '"message":"Feature not available for this subscription"}}'
        ),
    ),
    (ServerNotFoundError, '{"error":{"code":"SERVER_NOT_FOUND","message":"Server not found"}}'),
    (RateLimitedError, '{"error":{"code":"RATE_LIMITED","message":"Rate limit exceeded"}}'),
    (InternalError, '{"error":{"code":"INTERNAL_ERROR","message":"Internal server error"}}'),
]


@pytest.mark.parametrize(("kind", "body"), BODIES)
def test_the_body_says_code_and_message_and_never_the_reason(
    kind: type[ApiError], body: str
) -> None:
    assert ErrorResponse.from_error(kind("servers[0]: why")).to_json() == body.encode()


def test_the_reason_stays_with_the_person_who_asked() -> None:
    error = ServerNotFoundError("servers[1]: no id srv-1")

    assert error.reason == "servers[1]: no id srv-1"
    assert str(error) == "SERVER_NOT_FOUND: Server not found (servers[1]: no id srv-1)"


@pytest.mark.parametrize(
    ("kind", "exit_code"),
    [
        (UsageError, 2),
        (SnapshotError, 3),
        (OutputError, 4),
        (DifferenceError, 5),
        (SourceError, 6),
    ],
)
def test_a_failure_outside_the_api_has_an_exit_code_of_its_own(
    kind: type[SrvstatError], exit_code: int
) -> None:
    error = kind("why")

    assert (error.exit_code, error.reason, str(error)) == (exit_code, "why", "why")
    assert not isinstance(error, ApiError)


def test_no_two_errors_share_an_exit_code() -> None:
    kinds = subclasses_of(SrvstatError) - {ApiError}

    assert sorted(kind.exit_code for kind in kinds) == [2, 3, 4, 5, 6, 40, 41, 43, 44, 49, 50]
