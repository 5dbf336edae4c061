"""stub"""

from typing import Any


class Plan:
    requests_per_minute: int | None = None

    def must_allow(self, request: Any) -> None: ...


class Customer:
    sha256: bytes
    plan: Plan


class Access:
    def customer(self, key: bytes) -> Customer | None: ...


def read_access(path: str) -> Access: ...
