"""Convert the identifiers of a source to identifiers that the contract allows."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srvstat.sources.servers import SlugError, make_slug
from srvstat.sources.values import IDENTIFIER


@pytest.mark.parametrize(
    ("identifier", "slug"),
    [
        ("MAIN_LOBBY", "main-lobby"),
        ("play.example.net:30120", "play-example-net-30120"),
        ("  EU #1 [Hardcore] ", "eu-1-hardcore"),
        ("★ Best — Server ★", "best-server"),
        ("main-lobby", "main-lobby"),
        ("a" * 128, "a" * 128),
    ],
)
def test_runs_of_other_characters_become_one_hyphen(identifier: str, slug: str) -> None:
    assert make_slug(identifier) == slug


@given(st.text(st.characters(max_codepoint=127, exclude_characters="\0"), max_size=128))
def test_a_slug_is_an_identifier_and_its_own_slug(identifier: str) -> None:
    if not re.search("[A-Za-z0-9]", identifier):
        with pytest.raises(SlugError):
            make_slug(identifier)
        return
    slug = make_slug(identifier)

    assert IDENTIFIER.fullmatch(slug)
    assert make_slug(slug) == slug
    assert slug.replace("-", "") == re.sub("[^a-z0-9]", "", identifier.lower())


@pytest.mark.parametrize(
    ("identifier", "problem"),
    [
        ("Zürich", "has a letter or digit that is not ASCII"),
        ("\u212a", "has a letter or digit that is not ASCII"),
        ("", "has no letter or digit"),
        ("__--__", "has no letter or digit"),
        ("a" * 129, "is too long"),
        ("a" + "_" * 512, "is too long"),
        ("a\0", "is not Unicode text"),
        ("a\ud800", "is not Unicode text"),
    ],
)
def test_an_identifier_without_a_slug_is_named(identifier: str, problem: str) -> None:
    with pytest.raises(SlugError, match=rf'^".*["…] {problem}'):
        make_slug(identifier)
