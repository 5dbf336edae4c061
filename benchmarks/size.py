"""Print how many lines each part of the program takes, beside its budget: `make size`.

Lines of code leave out docstrings, comments and blank lines.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "srvstat"

BUDGETS = {
    "contract": 870,
    "files": 600,
    "documents": 950,
    "sources": 2_400,
    "snapshot": 3_150,
    "operations testing": 350,
    "analysis api": 2_150,
    "support": 1_600,
    "fleet": 1_250,
    "render": 4_550,
    "asgi": 1_100,
    "cli": 2_500,
    "__init__ __main__": 80,
}
"""The lines of code that the modules and packages of each part may take."""

IMPORTS = (ast.Import, ast.ImportFrom)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def count_code(path: Path) -> int:
    """Count the lines of a Python file without docstrings, comments and blank lines."""
    text = path.read_text(encoding="utf-8")
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    code = {
        line
        for token in tokens
        if token.type not in NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            is_docstring = isinstance(node.value.value, str)
            code -= set(range(node.lineno, (node.end_lineno or 0) + 1)) if is_docstring else set()
    return len(code)


def count_script(path: Path) -> int:
    """Count the lines of a JavaScript file without comments and blank lines."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    lines = map(str.strip, text.splitlines())
    return sum(bool(line) and not line.startswith("//") for line in lines)


def count_span(node: ast.stmt) -> int:
    """Count the lines of a statement, blank ones included."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def count_lines(paths: Iterable[Path]) -> int:
    """Count all lines of files."""
    return sum(len(path.read_bytes().splitlines()) for path in paths)


def count_words(path: Path) -> int:
    """Count the words of a Markdown file outside of code blocks; bars of tables are none."""
    prose = path.read_text(encoding="utf-8").split("\n```")[::2]
    return sum(bool(re.search(r"\w", word)) for part in prose for word in part.split())


def main() -> None:
    """Print the table."""
    print(f"{'part':32}{'files':>6}{'code':>8}{'budget':>8}")
    for part, budget in BUDGETS.items():
        files = [
            *chain.from_iterable((PACKAGE / name).rglob("*.py") for name in part.split()),
            *filter(Path.exists, (PACKAGE / f"{name}.py" for name in part.split())),
        ]
        print(f"{part:32}{len(files):6,}{sum(map(count_code, files)):8,}{budget:8,}")
    files = list(PACKAGE.rglob("*.py"))
    print(f"{'src':32}{len(files):6,}{sum(map(count_code, files)):8,}{22_000:8,}")
    scripts = list((PACKAGE / "render" / "web").glob("*.js"))
    print(f"{'JavaScript':32}{len(scripts):6,}{sum(map(count_script, scripts)):8,}{1_300:8,}")
    nodes = [node for path in files for node in ast.walk(ast.parse(path.read_bytes()))]
    imports = sum(count_span(node) for node in nodes if isinstance(node, IMPORTS))
    longest = max(count_span(node) for node in nodes if isinstance(node, FUNCTIONS))
    print(f"{'src, imports':38}{imports:8,}{1_980:8,}")
    print(f"{'src, longest function':38}{longest:8,}{60:8,}")
    tests = list((ROOT / "tests").rglob("*.py"))
    scripts = [*(ROOT / "benchmarks").rglob("*.py"), *(ROOT / "docs").rglob("*.py")]
    print(f"{'tests, all lines':32}{len(tests):6,}{count_lines(tests):8,}{36_000:8,}")
    print(
        f"{'docs scripts, benchmarks, all':32}{len(scripts):6,}{count_lines(scripts):8,}{4_000:8,}"
    )
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    print(f"{'docs, words':32}{len(pages):6,}{sum(map(count_words, pages)):8,}{30_000:8,}")


if __name__ == "__main__":
    main()
