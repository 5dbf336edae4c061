"""All campaigns."""

from campaigns import damage, faults, hostile, kills, load, requests, restarts, slow_clients, text
from campaigns.campaign import Campaign

_ALL: tuple[Campaign, ...] = (
    damage.CAMPAIGN,
    hostile.CAMPAIGN,
    requests.CAMPAIGN,
    text.CAMPAIGN,
    faults.BUILDS,
    faults.UPDATES,
    kills.KILLS,
    kills.INTERRUPTIONS,
    load.CAMPAIGN,
    slow_clients.CAMPAIGN,
    restarts.CAMPAIGN,
)
CAMPAIGNS = {campaign.name: campaign for campaign in _ALL}
