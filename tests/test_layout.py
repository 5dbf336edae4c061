"""The shape of the package: who may import whom, and where each library lives."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import ROOT

PACKAGE = ROOT / "src" / "srvstat"

ALLOWED = {
    "stats": set[str](),
    "contract": set[str](),
    "toml_text": {"contract"},
    "access": {"contract", "toml_text"},
    "sources": {"contract"},
    "render": {"contract"},
    "demo": {"contract"},
    "snapshot": {"contract", "sources", "stats"},
    "operations": {"contract", "snapshot", "stats"},
    "api": {"contract", "operations", "snapshot"},
    "asgi": {"access", "contract", "operations", "snapshot"},
    "cli": {
        "access",
        "asgi",
        "contract",
        "demo",
        "operations",
        "render",
        "snapshot",
        "sources",
        "__init__",
    },
    "__init__": {"api", "contract"},
    "__main__": {"cli"},
}

HOME = {
    "pydantic": "contract",
    "sqlite3": "snapshot",
    "sqlite_utils": "snapshot",
    "rich": "render",
    "typer": "cli",
    "h11": "asgi",
    "starlette": "asgi",
    "uvicorn": "asgi",
}


def parts() -> list[str]:
    found = {path.relative_to(PACKAGE).parts[0] for path in PACKAGE.rglob("*.py")}
    return sorted(name.removesuffix(".py") for name in found)


def imported(part: str) -> Iterator[tuple[Path, str]]:
    root = PACKAGE / part
    for path in root.rglob("*.py") if root.is_dir() else [root.with_suffix(".py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from ((path, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.module, f"{path}: a relative import"
                if node.module == "srvstat":
                    yield from ((path, f"srvstat.{alias.name}") for alias in node.names)
                else:
                    yield path, node.module


def test_every_part_has_a_rule() -> None:
    assert parts() == sorted(ALLOWED)


@pytest.mark.parametrize("part", sorted(ALLOWED))
def test_a_part_imports_only_what_lies_below_it(part: str) -> None:
    for path, name in imported(part):
        steps = name.split(".")
        if steps[0] == "srvstat":
            target = steps[1] if len(steps) > 1 else "__init__"
            assert target in ALLOWED[part] | {part}, f"{path.name} imports {name}"


@pytest.mark.parametrize("part", sorted(ALLOWED))
def test_a_library_is_imported_in_its_home_alone(part: str) -> None:
    for path, name in imported(part):
        library = name.split(".")[0]
        assert HOME.get(library, part) == part, f"{path.name} imports {library}"
        assert library != "click", f"{path.name} imports click, and Typer carries its own"


def test_the_package_is_marked_as_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()


def test_no_file_is_called_after_nothing() -> None:
    nothing = {"base", "common", "helpers", "manager", "misc", "util", "utils"}

    assert not nothing & {path.stem for path in PACKAGE.rglob("*.py")}
