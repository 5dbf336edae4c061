"""Check the import rules of docs/dev/architecture.md, and where each library is imported."""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from conftest import ROOT

PACKAGE = ROOT / "src" / "srvstat"

IMPORTS = {
    part: set(may_import.split())
    for part, may_import in {
        "contract": "",
        "documents": "contract",
        "files": "contract",
        "sources": "contract files",
        "snapshot": "contract",
        "snapshot/read": "contract documents files snapshot",
        "snapshot/write": "contract documents files sources snapshot snapshot/read",
        "render": "contract documents",
        "operations": "contract files snapshot snapshot/read",
        "testing": "contract operations",
        "fleet": "contract documents files sources snapshot snapshot/write",
        "analysis": "contract documents operations snapshot snapshot/read",
        "support": "contract documents files operations snapshot snapshot/read",
        "asgi": "contract documents files render operations analysis snapshot/read",
        "api": "contract documents files render operations analysis sources snapshot"
        " snapshot/read snapshot/write",
        "__init__": "api contract",
        "cli": "contract documents files sources operations fleet analysis support render asgi api"
        " snapshot snapshot/read snapshot/write",
        "__main__": "cli",
    }.items()
}
"""The parts that each part may import, from the lowest part to the highest."""

HOMES = {
    "anyascii": {"sources"},
    "click": set[str](),  # Typer carries its own
    "duckdb": {"fleet", "sources"},
    "fontpkg_noto_sans": {"render"},
    "ijson": {"files"},
    "mitmproxy": {"support"},
    "numpy": {
        "analysis",
        "contract",
        "snapshot",
        "snapshot/read",
        "snapshot/write",
        "sources",
        "support",
    },
    "pandas": {"documents"},
    "psycopg": {"sources"},
    "pyarrow": {"api", "documents", "fleet", "sources"},
    "pydantic": {"contract", "documents"},
    "python_calamine": {"sources"},
    "pyspark": {"fleet"},
    "pytest": {"testing"},
    "resvg_py": {"render"},
    "rich": {"render"},
    "sqlite3": {"sources", "snapshot/read", "snapshot/write"},
    "sqlite_utils": {"snapshot/write"},
    "starlette": {"asgi"},
    "typer": {"cli"},
    "zstandard": {"sources"},
    "uvicorn": {"asgi"},
    "yaml": {"support"},
}
"""The only parts that import a library."""

DOTTED = re.compile(r"srvstat(\.\w+)+")
SPLIT = {"snapshot"}
"""Packages whose subpackages have rules of their own."""

FILES = sorted(PACKAGE.rglob("*.py"))


def find_part(path: Path) -> str:
    first, *rest = path.relative_to(PACKAGE).with_suffix("").parts
    return f"{first}/{rest[0]}" if first in SPLIT and len(rest) > 1 else first


@cache
def list_nodes(path: Path) -> list[ast.AST]:
    return [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]


def list_imported_names(path: Path) -> Iterator[str]:
    """Yield the modules and names that a file imports, within functions too."""
    for node in list_nodes(path):
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom():
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def list_named_modules(path: Path) -> Iterator[str]:
    """Yield the modules that a file names in strings, to import them on first use."""
    for node in list_nodes(path):
        match node:
            case ast.Constant(value=str(text)) if DOTTED.fullmatch(text.partition(":")[0]):
                yield text.partition(":")[0]


def find_file(name: str) -> Path:
    """Return the file that defines an imported name of the package."""
    path = PACKAGE.joinpath(*name.split(".")[1:])
    while not (found := path.with_suffix(".py")).exists():
        if (found := path / "__init__.py").exists():
            break
        path = path.parent
    return found


def find_files(names: Iterable[str]) -> set[Path]:
    return {find_file(name) for name in names if name.split(".")[0] == "srvstat"}


def test_the_rules_run_from_higher_parts_to_lower_ones() -> None:
    assert sorted(IMPORTS) == sorted({find_part(path) for path in FILES})
    parts = list(IMPORTS)
    for number, part in enumerate(parts):
        assert IMPORTS[part] <= {*parts[:number]}, f"{part} may import a higher part"


@pytest.mark.parametrize("part", IMPORTS)
def test_a_part_imports_only_the_parts_and_the_libraries_of_its_rules(part: str) -> None:
    for path in filter(lambda path: find_part(path) == part, FILES):
        for found in find_files([*list_imported_names(path), *list_named_modules(path)]):
            assert find_part(found) in {part, *IMPORTS[part]}, f"{path} imports {found}"
        for library in {name.split(".")[0] for name in list_imported_names(path)}:
            assert part in HOMES.get(library, {part}), f"{path} imports {library}"


def test_imports_between_files_form_no_circle() -> None:
    imports = {path: find_files(list_imported_names(path)) - {path} for path in FILES}

    TopologicalSorter(imports).prepare()


def test_the_package_is_marked_as_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()


def test_no_file_has_a_vague_name() -> None:
    vague = {"base", "common", "helpers", "manager", "misc", "util", "utils"}

    assert not vague & {path.stem for path in FILES}
