"""Remove color codes from texts for people. Documents and answers have the texts unchanged."""

import re

_COLOR_CODE = re.compile(r"\^[0-9]")


def remove_color_codes(text: str) -> str:
    """Return a text without the color codes of Cfx.re, `^0` to `^9`, unless nothing else is in it.

    web/timeline.js has the same function.
    """
    if "^" not in text:
        return text
    shown = _COLOR_CODE.sub("", text)
    return shown if shown.strip() else text
