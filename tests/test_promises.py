"""The program says what it said before, and no campaign breaks its promise."""

from pathlib import Path

import pytest

from campaigns.__main__ import CAMPAIGNS
from campaigns.campaign import Campaign
from corpus.sessions import TRANSCRIPTS, compare_transcript


@pytest.mark.parametrize("path", sorted(TRANSCRIPTS.iterdir()), ids=lambda path: path.stem)
def test_the_program_says_what_it_said_before(path: Path) -> None:
    difference = compare_transcript(path)

    if difference:
        remedy = "`make corpus` shows this, and `make corpus WRITE=1` stores it:\n"
        pytest.fail(remedy + "".join(difference), pytrace=False)


pytestmark = pytest.mark.slow

SEED = 1


@pytest.mark.parametrize("campaign", CAMPAIGNS.values(), ids=CAMPAIGNS)
def test_no_case_breaks_the_promise(campaign: Campaign) -> None:
    if missing := campaign.list_missing_programs():
        pytest.skip(f"needs {', '.join(missing)}")

    result = campaign.run(SEED, campaign.short)

    assert result.failures == ()
    assert result.cases >= campaign.short
