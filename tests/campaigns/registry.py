"""All campaigns.

Only their runners import this, so that the process of a case loads one campaign.
"""

from campaigns import (
    bundles,
    damage,
    faults,
    flips,
    fuzz,
    kills,
    load,
    mutants,
    order,
    parallel,
    reads,
    replacements,
    requests,
    restarts,
    schema,
    slow_clients,
    text,
)
from campaigns.campaign import Campaign

_ALL: tuple[Campaign, ...] = (
    flips.CAMPAIGN,
    damage.CAMPAIGN,
    bundles.CAMPAIGN,
    requests.CAMPAIGN,
    schema.CAMPAIGN,
    text.CAMPAIGN,
    faults.BUILDS,
    faults.UPDATES,
    reads.CAMPAIGN,
    order.CAMPAIGN,
    kills.KILLS,
    kills.INTERRUPTIONS,
    parallel.CAMPAIGN,
    load.CAMPAIGN,
    slow_clients.CAMPAIGN,
    replacements.CAMPAIGN,
    restarts.CAMPAIGN,
    *fuzz.CAMPAIGNS,
    mutants.MUTANTS,
)
CAMPAIGNS = {campaign.name: campaign for campaign in _ALL}
