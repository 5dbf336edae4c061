"""Room for connections: there are so many at most, and those that wait for a client make way."""

from asyncio import Transport
from typing import Protocol


class Guest(Protocol):
    """What takes up room."""

    transport: Transport


class Room:
    """Counts connections, and knows which of them has waited longest for its client.

    An ended connection is out at once, though asyncio takes it apart a little later.
    """

    def __init__(self, most: int) -> None:
        self.is_closing = False
        """Once the service ends, nobody comes in."""
        self._most = most
        self._there: set[Guest] = set()
        # In the order in which they began to wait.
        self._waiting: dict[Guest, None] = {}

    def enter(self, guest: Guest) -> bool:
        """Let a connection in, whose client has said nothing yet; False where there is no room."""
        if self.is_closing:
            return False
        while len(self._there) >= self._most:
            oldest = next(iter(self._waiting), None)
            if oldest is None:
                return False
            self.leave(oldest)
            oldest.transport.abort()
        self._there.add(guest)
        self._waiting[guest] = None
        return True

    def waits(self, guest: Guest) -> None:
        """Note that it is the client's turn from now on, or that the client says no more."""
        if guest in self._there:
            self._waiting.pop(guest, None)
            self._waiting[guest] = None

    def is_asked(self, guest: Guest) -> None:
        """Note that it is the service's turn: who is owed an answer is not sent away."""
        self._waiting.pop(guest, None)

    def leave(self, guest: Guest) -> None:
        """Let a connection out."""
        self._there.discard(guest)
        self._waiting.pop(guest, None)
