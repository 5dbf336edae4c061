"""Read plans and keys from access files, and add keys."""

import hashlib
import os
import re
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import run

import pytest
from hypothesis import given

from conftest import ROOT
from srvstat.contract.errors import FeatureNotAvailableError, OutputError, SourceError, UsageError
from srvstat.contract.requests import CompareRequest, ServerReference, build_compare_request
from srvstat.operations.access import (
    MAX_ACCESS_BYTES,
    Access,
    Plan,
    add_key,
    generate_key,
    read_access,
)
from support.records import PLANS, AccessFile, access_files, format_key_table

STARTER = Plan(
    name="starter",
    operations=("get-server", "compare-servers"),
    ranges=("24h", "7d"),
    requests_per_minute=60,
)
DETAILS = Plan(name="details", operations=("get-server",), ranges=(), raw_history_days=7)
ONE, OTHER = "1" * 64, "2" * 64
GET = ServerReference(identifier="a", by="id")


def compare(range: str) -> CompareRequest:
    return build_compare_request(["a", "b"], range=range)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a file with two plans and no keys."""
    path = tmp_path / "access.toml"
    path.write_text(PLANS)
    return path


def find_problem(path: Path, content: str | bytes) -> str:
    """Return the reason why a content is rejected, without the file's name."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(SourceError) as refused:
        read_access(str(path))
    return refused.value.reason.removeprefix(str(path))


def test_a_byte_order_mark_is_skipped_and_does_not_shift_lines(path: Path) -> None:
    path.write_text(f"\ufeff{PLANS}", encoding="utf-8")
    key = generate_key()

    add_key(str(path), "details", key)

    assert read_access(str(path)).find_plan(key.encode()) == DETAILS
    assert find_problem(path, "\ufeffplans = 5") == ", line 1: plans: must be a table"


def test_the_example_in_the_documentation_is_valid(path: Path) -> None:
    text = (ROOT / "docs/reference/access.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    path.write_text(example)

    access = read_access(str(path))

    changed = {"name": "basic", "ranges": ("24h", "7d", "30d"), "raw_history_days": 7}
    assert access.plans == {"basic": STARTER.model_copy(update=changed)}
    assert len(access.keys) == 1


def test_the_error_for_an_unknown_plan_lists_the_plans(path: Path) -> None:
    with pytest.raises(UsageError, match=r'^no plan "pro"; the file has starter, details$'):
        read_access(str(path)).get_plan("pro")
    with pytest.raises(UsageError, match=r'^no plan "pro"; the file has no plans$'):
        Access({}, {}).get_plan("pro")


@pytest.mark.parametrize(
    ("plan", "request_", "reason"),
    [
        (STARTER, GET, None),
        (STARTER, compare("24h"), None),
        (STARTER, compare("7d"), None),
        (STARTER, compare("30d"), "plan starter does not include range 30d; it includes 24h, 7d"),
        (DETAILS, GET, None),
        (
            DETAILS,
            compare("24h"),
            "plan details does not include operation compare-servers; it includes get-server",
        ),
        (
            Plan(name="none", operations=(), ranges=("24h",)),
            GET,
            "plan none does not include operation get-server or any other operation",
        ),
        (
            Plan(name="raw", operations=("compare-servers",), ranges=()),
            compare("24h"),
            "plan raw does not include range 24h or any other range",
        ),
    ],
)
def test_a_plan_allows_only_its_operations_and_ranges(
    plan: Plan, request_: ServerReference | CompareRequest, reason: str | None
) -> None:
    if reason is None:
        plan.check_request(request_)
    else:
        with pytest.raises(FeatureNotAvailableError) as refused:
            plan.check_request(request_)
        assert refused.value.reason == reason


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", ", line 1: plans: missing"),
        ("plans = 1", ", line 1: plans: must be a table"),
        ("\n\nplans.a = 1", ", line 3: plans.a: must be a table"),
        ("[plans.a]\nranges = []\n", ", line 1: plans.a.operations: missing"),
        (
            PLANS + "more = 1\n",
            ", line 10: plans.details.more: unknown property",
        ),
        (
            PLANS.replace('"7d"', '"7d", "8d"'),
            ', line 3: plans.starter.ranges[2]: "8d" is not one of 24h, 7d, 30d, 90d, 1y',
        ),
        (PLANS.replace('"7d"', '"24h"'), ", line 3: plans.starter.ranges[1]: the same as [0]"),
        (
            PLANS.replace('["get-server"]', '["get"]'),
            ', line 7: plans.details.operations[0]: "get" is not one of get-server, compare-servers',  # noqa: E501 - a message is one line
        ),
        (
            PLANS.replace("= 60", "= 0"),
            ", line 4: plans.starter.requests_per_minute: must be at least 1",
        ),
        (
            PLANS.replace("= 60", f"= {2**53}"),
            ", line 4: plans.starter.requests_per_minute: must be at most 9,007,199,254,740,991",
        ),
        (
            PLANS.replace("plans.details", 'plans."all of it"'),
            ', line 6: plans["all of it"]: a plan\'s name must be 1 to 64 letters, digits, hyphens or underscores',  # noqa: E501 - a message is one line
        ),
        (PLANS + format_key_table("1" * 63), ", line 12: keys[0].sha256: must be 64 lower-case hexadecimal digits"),  # noqa: E501 - a message is one line
        (f"{PLANS}[[keys]]\nsha256 = 1".replace("\n", "\r\n"), ", line 11: keys[0].sha256: must be a string"),  # noqa: E501 - a message is one line
        (PLANS + f"[[keys]]\nsha256 = {ONE}", ", line 11: keys[0].sha256: must be a string"),
        (PLANS + '[[keys]]\nplan = "starter"', ", line 10: keys[0].sha256: missing"),
        (
            PLANS + format_key_table(ONE) + format_key_table(OTHER, "pro"),
            ", line 17: keys[1].plan: unknown plan; the file has starter, details",
        ),
        (
            PLANS + "".join(map(format_key_table, (ONE, OTHER, ONE))),
            ", line 20: keys[2].sha256: the same as keys[0].sha256",
        ),
        (
            f'keys = [\n{{sha256 = "{ONE}", plan = "a"}}]\nplans = {{}}',
            ", line 1: keys[0].plan: unknown plan; the file has no plans",
        ),
        ("[plans.a]\nranges", ", line 2: not TOML at its end: Expected '=' after a key in a key/value pair"),  # noqa: E501 - a message is one line
        ("[plans.a]\n= 1\n", ", line 2: not TOML at column 1: Invalid statement"),
        (PLANS + "[plans.starter]\n", ", line 10: not TOML at column 15: Cannot declare ('plans', 'starter') twice"),  # noqa: E501 - a message is one line
        ("\ufeff\ufeff" + PLANS, ", line 1: not TOML at column 1: Invalid statement"),
        (f"[plans.a]\nranges = {'[' * 100_000}", ", line 1: nested too deeply"),
        (f"x = {'9' * 5_000}", ", line 1: not TOML: a number has too many digits"),
        (b"[plans.a]\n# \xff\n", ", line 2: not UTF-8"),
    ],
)  # fmt: skip
def test_an_invalid_file_is_rejected_with_line_location_and_reason(
    path: Path, content: str | bytes, reason: str
) -> None:
    assert find_problem(path, content) == reason


def test_deep_nesting_is_rejected(path: Path) -> None:
    # At some depth the file still parses but can no longer be validated.
    for depth in range(100, 400):
        nested = f"x = {'{a = ' * depth}1{'}' * depth}"
        reason = find_problem(path, f"{PLANS}{nested}\n")
        assert reason in (
            ", line 1: nested too deeply",
            ", line 10: plans.details.x: unknown property",
        )
    assert reason == ", line 1: nested too deeply"


def test_a_key_written_by_mistake_is_not_quoted_in_the_error(path: Path) -> None:
    key = generate_key()
    for content in (
        PLANS + format_key_table(key),
        PLANS + format_key_table(ONE, key),
        PLANS + f'[[keys]]\n{key} = "starter"\n',
        PLANS + f'[keys]\n{key} = "starter"\n',
        PLANS + f'{key} = "starter"\n',
        PLANS + f"keys = [{{{key} = 1, {key} = 2}}]\n",
        PLANS.replace("plans.details", f'plans."{key} "'),
    ):
        assert key not in find_problem(path, content)


def test_a_file_over_4_mib_is_rejected(path: Path) -> None:
    content = PLANS + "#" * (MAX_ACCESS_BYTES - len(PLANS))
    path.write_text(content)

    assert read_access(str(path)).plans.keys() == {"starter", "details"}
    assert find_problem(path, content + "#") == ": more than 4,194,304 bytes"
    path.write_text(content)
    with pytest.raises(SourceError, match="would exceed 4,194,304 bytes"):
        add_key(str(path), "starter", generate_key())
    assert path.read_text() == content


def test_a_path_that_is_not_a_regular_file_is_rejected_at_once(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path, reason in (
        (str(tmp_path), "a directory, not an access file"),
        (str(fifo), "a pipe, socket or device, not an access file"),
        (os.devnull, "a pipe, socket or device, not an access file"),
        (str(tmp_path / "none"), "no such file; `srvstat demo` writes an example"),
        (str(fifo / "below"), "not a directory"),
        ("a\0b", "not a file name"),
    ):
        with pytest.raises(SourceError) as refused:
            read_access(path)
        assert refused.value.reason == f"{path}: {reason}"


def test_an_error_at_the_end_of_a_long_file_is_located(path: Path) -> None:
    """Quadratic work would take minutes."""
    keys = "".join(format_key_table(f"{number:064x}") for number in range(7_500))

    reason = find_problem(path, PLANS + keys + format_key_table("x"))

    assert reason.startswith(", line 30012: keys[7500].sha256: ")


@given(access_files())
def test_a_file_reads_the_same_in_every_form_of_toml(
    tmp_path_factory: pytest.TempPathFactory, file: AccessFile
) -> None:
    text, plans, keys = file
    path = tmp_path_factory.getbasetemp() / "drawn.toml"
    path.write_bytes(text.encode())

    access = read_access(str(path))

    assert list(access.plans) == list(plans)
    for name, plan in plans.items():
        read = access.plans[name]
        assert (list(read.operations), list(read.ranges)) == (plan["operations"], plan["ranges"])
        assert read.raw_history_days == plan.get("raw_history_days", 0)
        assert read.requests_per_minute == plan.get("requests_per_minute")
    assert {sha256: plan.name for sha256, plan in access.keys.items()} == keys


def test_a_generated_key_is_random_and_has_a_prefix() -> None:
    keys = {generate_key() for _ in range(1_000)}

    assert len(keys) == 1_000
    assert all(re.fullmatch(r"srvstat_[A-Za-z0-9_-]{43}", key) for key in keys)


def test_a_key_is_appended_and_the_file_is_otherwise_unchanged(path: Path) -> None:
    link = path.with_name("link.toml")
    link.symlink_to(path)
    path.chmod(0o640)
    before = path.stat()
    key = generate_key()

    add_key(str(link), "details", key)

    sha256 = hashlib.sha256(key.encode()).hexdigest()
    assert path.read_text() == PLANS + format_key_table(sha256, "details")
    assert read_access(str(path)).find_plan(key.encode()) == DETAILS
    assert link.is_symlink()
    after = path.stat()
    assert (after.st_ino, stat.S_IMODE(after.st_mode)) == (before.st_ino, 0o640)


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "# and a comment", "\n\n\n"])
def test_a_key_is_appended_after_any_end_of_file(path: Path, end: str) -> None:
    before = (PLANS.rstrip("\n") + end).encode()
    path.write_bytes(before)
    keys = [generate_key() for _ in range(3)]

    for key in keys:
        add_key(str(path), "starter", key)

    access = read_access(str(path))
    assert all(access.find_plan(key.encode()) for key in keys)
    assert len(access.keys) == 3
    after = path.read_bytes()
    assert after.startswith(before)
    assert after.replace(b"\r", b"").count(b"\n\n[[keys]]\n") == 3


def test_a_key_cannot_be_appended_to_inline_keys(path: Path) -> None:
    content = f'keys = [{{sha256 = "{ONE}", plan = "starter"}}]\n{PLANS}'
    path.write_text(content)

    with pytest.raises(SourceError) as refused:
        add_key(str(path), "starter", generate_key())

    assert refused.value.reason == (
        f"{path}: a key can't be appended; write the existing keys as [[keys]] tables, not as"
        " keys = […]"
    )
    assert path.read_text() == content


def test_an_existing_key_an_unknown_plan_and_an_invalid_file_are_rejected(path: Path) -> None:
    key = generate_key()
    add_key(str(path), "starter", key)
    before = path.read_text()

    with pytest.raises(SourceError, match="already has this key"):
        add_key(str(path), "details", key)
    with pytest.raises(UsageError, match=r'no plan "pro"; the file has starter, details'):
        add_key(str(path), "pro", generate_key())

    assert path.read_text() == before
    path.write_text("nonsense")
    with pytest.raises(SourceError, match="line 1: not TOML"):
        add_key(str(path), "starter", generate_key())
    assert path.read_text() == "nonsense"


def test_a_partly_written_key_is_removed(path: Path) -> None:
    code = """
import resource, sys
from srvstat.operations.access import add_key
from srvstat.contract.errors import OutputError
path, size = sys.argv[1], int(sys.argv[2])
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
try:
    add_key(path, "starter", "a key")
except OutputError as error:
    print(error.reason.removeprefix(path))
resource.setrlimit(resource.RLIMIT_FSIZE, limits)
"""
    command = [sys.executable, "-c", code, str(path), str(len(PLANS) + 20)]

    done = run(command, capture_output=True, text=True, check=True)

    assert (done.stdout, done.stderr) == (": file too large\n", "")
    assert path.read_text() == PLANS


def test_a_read_only_file_is_an_output_error(path: Path) -> None:
    path.chmod(0o400)
    if os.access(path, os.W_OK):
        pytest.skip("this user may write all files")

    with pytest.raises(OutputError, match="permission denied"):
        add_key(str(path), "starter", generate_key())


def test_keys_appended_at_the_same_time_are_all_kept(path: Path) -> None:
    keys = [generate_key() for _ in range(60)]

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda key: add_key(str(path), "starter", key), keys))

    access = read_access(str(path))
    assert len(access.keys) == 60
    assert all(access.find_plan(key.encode()) for key in keys)


def test_replacing_the_file_meanwhile_is_an_error(path: Path) -> None:
    code = """
import fcntl, os, sys, threading
from srvstat.operations.access import add_key
from srvstat.contract.errors import OutputError
path = sys.argv[1]
with open(path) as locked:
    fcntl.flock(locked, fcntl.LOCK_EX)
    done = []
    def add():
        try:
            add_key(path, "starter", "a key")
        except OutputError as error:
            done.append(error.reason)
    adding = threading.Thread(target=add)
    adding.start()
    adding.join(0.5)
    assert adding.is_alive()
    os.link(path, path + ".old")
    with open(path + ".new", "w") as new:
        new.write(locked.read())
    os.rename(path + ".new", path)
adding.join()
print(*done)
"""
    done = run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)

    assert done.stdout == f"{path}: was replaced while the key was added; try again\n"
    assert path.read_text() == path.with_name("access.toml.old").read_text() == PLANS


def test_a_key_is_neither_stored_nor_in_the_representation(path: Path) -> None:
    key = generate_key()
    add_key(str(path), "starter", key)

    access = read_access(str(path))

    assert key not in repr(access) + repr(access.keys)
    assert key not in path.read_text()
