"""Read Markdown, its examples, and pages, as far as tests need it."""

import re
import shlex
import unicodedata
from html.parser import HTMLParser
from typing import Self

from markdown_it import MarkdownIt

from conftest import ROOT


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


def read_marked_block(page: str, name: str) -> list[str]:
    """Return the lines of the code after the comment `example: NAME` of a page."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    (code,) = re.findall(f"<!-- example: {name} -->\n```(?:sh|html)?\n(.*?)```", text, re.DOTALL)
    return str(code).splitlines()


def read_command(line: str) -> list[str]:
    """Return the arguments of srvstat in a line, with or without a prompt."""
    program, *arguments = shlex.split(line.removeprefix("$ "))
    assert program == "srvstat"
    return arguments


_VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})


class Node:
    """An element of a page, with its texts and elements in their order."""

    def __init__(self, tag: str, attributes: dict[str, str]) -> None:
        self.tag = tag
        self.attributes = attributes
        self.children: list[Node | str] = []

    def __repr__(self) -> str:
        return f"<{self.tag}>"

    @property
    def text(self) -> str:
        """All text in an element."""
        return "".join(one if isinstance(one, str) else one.text for one in self.children)

    def find_all(self, *tags: str) -> list["Node"]:
        """Return the elements of these names in it, or all, in the order of the page."""
        found = []
        for child in self.children:
            if isinstance(child, Node):
                found += [child] if not tags or child.tag in tags else []
                found += child.find_all(*tags)
        return found

    def find(self, identifier: str) -> "Node":
        """Return the only element with an id."""
        (found,) = (one for one in self.find_all() if one.attributes.get("id") == identifier)
        return found


class Page(HTMLParser):
    """A page, whose elements must be balanced."""

    @classmethod
    def parse(cls, page: bytes) -> Self:
        """Parse a page."""
        parser = cls()
        parser.feed(page.decode())
        parser.close()
        assert len(parser.open) == 1, f"not closed: {parser.open[-1].tag}"
        return parser

    def __init__(self) -> None:
        super().__init__()
        self.root = Node("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element, unless it has no content."""
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), f"an attribute of {tag} is repeated"
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(node)
        if tag not in _VOID:
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        """Close the innermost element."""
        assert self.open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        """Add text."""
        self.open[-1].children.append(data)

    def handle_comment(self, data: str) -> None:
        """Fail: a page has no comments."""
        raise AssertionError(f"a comment: {data}")
