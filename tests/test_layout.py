"""Check the import rules of docs/architecture.md, and where each library is imported."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import ROOT

PACKAGE = ROOT / "src" / "srvstat"

IMPORTS = {
    "stats": set[str](),
    "testing": set[str](),
    "trends": set[str](),
    "version": set[str](),
    "web": set[str](),
    "contract": set[str](),
    "documents": {"contract"},
    "files": {"contract"},
    "demo": {"contract"},
    "access": {"contract", "files"},
    "sources": {"contract", "files"},
    "render": {"contract", "documents", "web"},
    "snapshot/format": {"contract", "stats"},
    "snapshot/read": {"contract", "documents", "files", "snapshot/format", "stats"},
    "snapshot/write": {
        "contract",
        "documents",
        "files",
        "snapshot/format",
        "snapshot/read",
        "sources",
    },
    "operations": {"contract", "snapshot/format", "snapshot/read", "stats"},
    "fleet": {
        "contract",
        "documents",
        "files",
        "operations",
        "snapshot/format",
        "snapshot/write",
        "sources",
        "stats",
    },
    "analysis": {
        "access",
        "contract",
        "documents",
        "operations",
        "snapshot/format",
        "snapshot/read",
        "stats",
        "trends",
        "version",
    },
    "support": {
        "access",
        "contract",
        "documents",
        "files",
        "operations",
        "snapshot/format",
        "snapshot/read",
        "stats",
        "version",
    },
    "api": {
        "analysis",
        "contract",
        "documents",
        "operations",
        "snapshot/format",
        "snapshot/read",
    },
    "asgi": {
        "access",
        "analysis",
        "contract",
        "files",
        "operations",
        "snapshot/read",
        "support",
        "web",
    },
    "cli": {
        "access",
        "analysis",
        "asgi",
        "contract",
        "demo",
        "documents",
        "files",
        "fleet",
        "operations",
        "render",
        "snapshot/format",
        "snapshot/read",
        "snapshot/write",
        "sources",
        "support",
        "version",
    },
    "__init__": {"api", "contract", "version"},
    "__main__": {"cli"},
}
"""The packages and modules that each of them imports.

`snapshot` imports `documents` because a build and a verification return documents: their summary
and their result. All other documents come from `analysis`.
"""

HOMES = {
    "pydantic": {"contract", "documents"},
    "sqlite3": {"sources", "snapshot/format", "snapshot/read", "snapshot/write"},
    "sqlite_utils": {"snapshot/write"},
    "rich": {"render"},
    "typer": {"cli"},
    "ijson": {"files"},
    "h11": {"asgi"},
    "pandas": {"documents"},
    "plotille": {"render"},
    "pytest": {"testing"},
    "pyarrow": {"documents", "fleet", "sources"},
    "pyspark": {"fleet"},
    "grpc": {"fleet"},
    "duckdb": {"fleet", "sources"},
    "psycopg": {"sources"},
    "fontpkg_noto_sans": {"render"},
    "resvg_py": {"render"},
    "starlette": {"asgi"},
    "uvicorn": {"asgi"},
}
"""The only places that import a library."""

SPLIT = {"snapshot"}
"""Packages whose subpackages have rules of their own."""


def list_parts() -> list[str]:
    return sorted({find_part(path) for path in PACKAGE.rglob("*.py")} - SPLIT)


def find_part(path: Path) -> str:
    first, *rest = path.relative_to(PACKAGE).with_suffix("").parts
    return f"{first}/{rest[0]}" if first in SPLIT and len(rest) > 1 else first


def list_imports(part: str) -> Iterator[tuple[Path, str]]:
    for path in PACKAGE.rglob("*.py"):
        if find_part(path) == part:
            yield from ((path, name) for name in list_imported_names(path))


def list_imported_names(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module, f"{path}: a relative import"
            # `from srvstat import operations` names a module, and so may any other `from`.
            is_package = (PACKAGE.parent / node.module.replace(".", "/")).is_dir()
            yield from (
                f"{node.module}.{alias.name}" if is_package else node.module for alias in node.names
            )


def find_imported_part(name: str) -> str:
    _, *steps = name.split(".")
    if not steps or (
        not (PACKAGE / steps[0]).exists() and not (PACKAGE / f"{steps[0]}.py").exists()
    ):
        return "__init__"
    return "/".join(steps[:2]) if steps[0] in SPLIT else steps[0]


def test_every_part_has_a_rule() -> None:
    assert list_parts() == sorted(IMPORTS)


@pytest.mark.parametrize("part", sorted(IMPORTS))
def test_a_part_imports_exactly_the_parts_of_its_rule(part: str) -> None:
    found = {}
    for path, name in list_imports(part):
        if name.split(".")[0] == "srvstat" and find_imported_part(name) != part:
            found[find_imported_part(name)] = f"{path.name} imports {name}"

    assert found.keys() == IMPORTS[part], found


@pytest.mark.parametrize("part", sorted(IMPORTS))
def test_a_library_is_imported_only_where_it_may_be(part: str) -> None:
    for path, name in list_imports(part):
        library = name.split(".")[0]
        assert part in HOMES.get(library, {part}), f"{path.name} imports {library}"
        assert library != "click", f"{path.name} imports click, but Typer carries its own"


def test_the_package_is_marked_as_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()


def test_no_file_has_a_vague_name() -> None:
    vague = {"base", "common", "helpers", "manager", "misc", "util", "utils"}

    assert not vague & {path.stem for path in PACKAGE.rglob("*.py")}
