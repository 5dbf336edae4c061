"""The options of `serve` that rehearse failures."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import Cli
from srvstat.asgi import MAX_DELAY_SECONDS, RehearsalSettings
from srvstat.cli.serve import RehearsalOptions, describe_rehearsal

SECONDS = st.integers(1, MAX_DELAY_SECONDS * 1_000).map(lambda ms: ms / 1_000)
SHARES = st.integers(0, 100_000).map(lambda thousandths: thousandths / 100_000)


def parse_options(text: str) -> RehearsalSettings | None:
    words = iter(text.split())
    given: dict[str, Any] = {
        word.strip("-").replace("-", "_"): word == "--allow-prefer" or next(words) for word in words
    }
    if "seed" in given:
        given["seed"] = int(given["seed"])
    return RehearsalOptions(**given).parse()


@given(
    st.builds(
        RehearsalSettings,
        delay=st.none() | st.tuples(SECONDS, SECONDS).map(lambda pair: (min(pair), max(pair))),
        fail=SHARES,
        drop=SHARES,
        seed=st.integers(0, 2**53 - 1),
        allows_prefer=st.booleans(),
    )
)
def test_settings_are_described_as_the_options_that_set_them(settings: RehearsalSettings) -> None:
    draws = settings.delay or settings.fail or settings.drop
    expected = settings if draws else settings._replace(seed=1)

    found = parse_options(describe_rehearsal(settings)) or RehearsalSettings()

    assert found[0] == pytest.approx(expected[0])
    assert found[1:3] == pytest.approx(expected[1:3])
    assert found[3:] == expected[3:]


@pytest.mark.parametrize("text", ["--fail 0%", "--delay 0s", "--drop 0.0% --seed 4", ""])
def test_no_share_and_no_delay_rehearse_nothing(text: str) -> None:
    assert parse_options(text) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("--delay 200", '--delay: "200" is not a time; write 200ms, 1.5s or 50ms..2s'),
        ("--delay 50..200ms", "is not a time"),
        ("--delay -1s", "is not a time"),
        ("--delay 1m", "is not a time"),
        ("--delay 1s..", "is not a time"),
        ("--delay 1_0s", "is not a time"),
        ("--delay \u0661s", "is not a time"),
        ("--delay 15.001s", "is too long; at most 15s, so that the answer arrives before"),
        ("--delay 2s..50ms", '--delay: "2s..50ms" begins with the longer time; swap the two'),
        ("--fail 5", '--fail: "5" is not a share from 0% to 100%'),
        ("--fail 100.001%", "is not a share"),
        ("--drop -1%", "--drop: "),
        ("--drop 1e1%", "is not a share"),
        ("--seed 7", "--seed: nothing to draw; add --delay, --fail or --drop"),
        ("--allow-prefer --seed 7", "--seed: nothing to draw"),
    ],
)
def test_a_malformed_value_is_refused_before_anything_else(
    cli: Cli, text: str, reason: str
) -> None:
    ran = cli("serve", "--snapshot", "missing.db", "--port", "0", *text.split())

    assert (ran.exit_code, ran.stdout) == (2, b"")
    assert ran.stderr.startswith("error: --")
    assert reason in ran.stderr
