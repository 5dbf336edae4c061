"""What an error keeps in memory."""

import pytest
from pydantic import ValidationError

from srvstat.contract.errors import InvalidRequestError
from srvstat.contract.requests import parse_compare_request

ONE = b'{"servers":[{"identifier":"a","by":"id"}]}'
TWICE = b'{"servers":[{"identifier":"a","by":"id"},{"identifier":"a","by":"id"}]}'


@pytest.mark.parametrize("body", [ONE, TWICE])
def test_the_error_of_a_request_holds_nothing_that_the_garbage_collector_cannot_see(
    body: bytes,
) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        parse_compare_request(body)

    error: BaseException | None = refused.value
    while error:
        assert not isinstance(error, ValidationError), "it holds frames, and hides them"
        error = error.__context__
