"""Summarize an access file: what each plan allows, and its number of keys."""

from collections import Counter

from srvstat.access import Access
from srvstat.documents.support import AccessCheck, PlanPermissions


def summarize_access(access: Access) -> AccessCheck:
    """Return what each plan of an access file allows, in the order of the file."""
    keys = Counter(customer.plan.name for customer in access.customers)
    plans = tuple(
        PlanPermissions(
            name=plan.name,
            operations=plan.operations,
            ranges=plan.ranges,
            raw_history_days=plan.raw_history_days,
            requests_per_minute=plan.requests_per_minute,
            keys=keys[plan.name],
        )
        for plan in access.plans.values()
    )
    return AccessCheck(plans=plans, keys=len(access.customers))
