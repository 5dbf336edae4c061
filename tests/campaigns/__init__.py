"""Campaigns: promises of srvstat tried many times over, each with a short and a long form."""

from campaigns import requests, text
from campaigns.campaign import Campaign

_ALL: tuple[Campaign, ...] = (requests.CAMPAIGN, text.CAMPAIGN)
CAMPAIGNS = {campaign.name: campaign for campaign in _ALL}
