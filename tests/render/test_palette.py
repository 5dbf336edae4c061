"""Colors have enough contrast in both themes (WCAG 2.2, 1.4.3 and 1.4.11)."""

import pytest

from srvstat.render.pictures.svg import Theme, read_palette

TEXTS = ("--ink", "--muted", "--accent", "--rise", "--fall")


def measure_luminance(color: str) -> float:
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in channels
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def measure_contrast(one: str, other: str) -> float:
    darker, lighter = sorted(map(measure_luminance, (one, other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_and_lines_stand_out_from_the_paper(theme: Theme) -> None:
    palette = read_palette(theme)
    contrast = {
        name: measure_contrast(color, palette["--paper"]) for name, color in palette.items()
    }

    assert min(contrast[name] for name in TEXTS) >= 4.5
    assert min(contrast[f"--series-{number}"] for number in range(1, 6)) >= 3


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_levels_differ_from_their_neighbors_and_in_one_direction(theme: Theme) -> None:
    palette = read_palette(theme)
    levels = [measure_luminance(palette[f"--level-{number}"]) for number in range(7)]

    assert levels == sorted(levels, reverse=theme == "light")
    for number in range(6):
        one, other = palette[f"--level-{number}"], palette[f"--level-{number + 1}"]
        assert measure_contrast(one, other) >= 1.2
