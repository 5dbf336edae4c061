"""Read tables in GitHub Flavored Markdown."""

import unicodedata

from markdown_it import MarkdownIt


def parse_table(text: str) -> list[list[str]]:
    """Return the cells of a table, head included. Nothing but the table may be markup."""
    rows: list[list[str]] = []
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text):
        assert token.type.split("_")[0] in {"table", "thead", "tbody", "tr", "th", "td", "inline"}
        if token.type == "tr_open":
            rows.append([])
        if token.type == "inline":
            assert {child.type for child in token.children or []} <= {"text", "text_special"}
            rows[-1].append("".join(child.content for child in token.children or []))
    return rows


def make_visible(text: str) -> str:
    r"""Return text as a table shows it: invisible characters as `\uXXXX`, no space at the ends."""
    return "".join(map(_show_character, text)).strip()


def _show_character(character: str) -> str:
    if unicodedata.category(character) not in {"Cc", "Cf", "Cn", "Co", "Zl", "Zp"}:
        return character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
