"""What the plans of an access file allow."""

from typing import Literal

from srvstat.documents.document import Document, Part


class PlanPermissions(Part):
    """What one plan allows, and its number of keys.

    Without `requests_per_minute` there is no limit.
    """

    name: str
    operations: tuple[str, ...]
    ranges: tuple[str, ...]
    raw_history_days: int
    requests_per_minute: int | None
    keys: int


class AccessCheck(Document):
    """The plans in the order of the file, and the number of all keys."""

    document: Literal["accessCheck"] = "accessCheck"
    version: Literal[1] = 1
    plans: tuple[PlanPermissions, ...]
    keys: int
