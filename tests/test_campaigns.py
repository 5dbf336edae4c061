"""Run the short form of every campaign; `make soak` runs the long forms."""

import pytest

from campaigns.campaign import Campaign
from campaigns.registry import CAMPAIGNS

pytestmark = pytest.mark.slow

SEED = 1


@pytest.mark.parametrize("campaign", CAMPAIGNS.values(), ids=CAMPAIGNS)
def test_no_case_breaks_the_promise(campaign: Campaign) -> None:
    if missing := campaign.list_missing_programs():
        pytest.skip(f"needs {', '.join(missing)}")

    result = campaign.run(SEED, campaign.short)

    assert result.failures == ()
    assert result.cases >= campaign.short
