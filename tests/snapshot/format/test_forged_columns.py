"""Refuse columns that no build writes, even if their digests match."""

import pytest
from srvstat.snapshot.format.bands import read_bands
from srvstat.snapshot.format.calendar import read_block

from snapshot.server_rows import build_server
from srvstat.snapshot.format.rows import ForgedRowError


@pytest.mark.parametrize(("days", "digests"), [(b"\1", b""), (b"\1" * 33, bytes(16 * 33))])
def test_too_many_days_or_days_without_digests_are_refused(days: bytes, digests: bytes) -> None:
    with pytest.raises(ForgedRowError, match="days"):
        read_block(days, digests)


def test_a_part_of_a_digest_is_refused() -> None:
    with pytest.raises(ForgedRowError, match="not digests of bands"):
        read_bands(build_server(1, band_digests=b"x"))
