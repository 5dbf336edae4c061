"""All campaigns."""

from campaigns import damage, faults, hostile, kills, requests, text
from campaigns.campaign import Campaign

_ALL: tuple[Campaign, ...] = (
    damage.CAMPAIGN,
    hostile.CAMPAIGN,
    requests.CAMPAIGN,
    text.CAMPAIGN,
    faults.BUILDS,
    faults.UPDATES,
    faults.BUNDLES,
    faults.EXPORTS,
    kills.KILLS,
    kills.INTERRUPTIONS,
)
CAMPAIGNS = {campaign.name: campaign for campaign in _ALL}
