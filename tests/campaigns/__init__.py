"""Campaigns: promises of srvstat tried many times over, each with a short and a long form."""

from campaigns.campaign import Campaign
from campaigns.damage import DAMAGE
from campaigns.flips import FLIPS

_ALL: tuple[Campaign, ...] = (FLIPS, DAMAGE)
CAMPAIGNS = {campaign.name: campaign for campaign in _ALL}
