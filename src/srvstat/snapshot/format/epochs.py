"""Find the epoch of a server: how many of its first observations determine its bands.

An epoch begins when a server has a certain number of observations, so most new observations change
neither the bands of its values nor those of its intervals, nor any row that depends on them.
"""

from hashlib import sha256

_FRACTION_BITS = 18


def find_epoch(server_id: str, observations: int) -> int:
    """Return the number of first observations that determine the bands of a server.

    It is the last of a series of thresholds that the server has reached. Each is about a quarter
    larger than the one before. The first depends on the id, so that the servers of a fleet reach
    theirs on different days.
    """
    offset = int.from_bytes(sha256(server_id.encode()).digest()[:2])
    threshold = (1 << _FRACTION_BITS) + offset
    while (following := threshold * 5 // 4) >> _FRACTION_BITS <= observations:
        threshold = following
    return min(threshold >> _FRACTION_BITS, observations)
