"""Check the six errors of the API (specification, section 7) and all exit codes."""

import pickle

import pytest

from srvstat.contract.errors import ApiError, ParameterError, SrvstatError, UsageError


def find_subclasses(error: type[SrvstatError]) -> set[type[SrvstatError]]:
    """Return the subclasses that are defined in errors.py; others only add a status or a header."""
    found = {kind for kind in error.__subclasses__() if kind.__module__ == SrvstatError.__module__}
    return found.union(*map(find_subclasses, found))


@pytest.mark.parametrize("kind", ApiError.__subclasses__())
def test_the_exit_code_is_the_first_and_last_digit_of_the_status(kind: type[ApiError]) -> None:
    status = str(kind.http_status)

    assert str(kind.exit_code) == status[0] + status[-1]


@pytest.mark.parametrize("value", ["{", "{tz}", "x"])
def test_an_error_of_a_parameter_survives_pickling(value: str) -> None:
    error = ParameterError("{tz}: no time zone {value}", value=value)

    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes

    assert (type(copy), copy.reason) == (ParameterError, f"tz: no time zone {value}")
    assert copy.describe("--{}".format) == f"--tz: no time zone {value}"


def test_no_two_kinds_of_errors_share_an_exit_code() -> None:
    kinds = find_subclasses(SrvstatError) - {ApiError} - find_subclasses(UsageError)

    assert sorted(kind.exit_code for kind in kinds) == [2, 3, 4, 5, 6, 7, 40, 41, 43, 44, 49, 50]
