"""Define the options of `serve` that rehearse failures, and interpret their values."""

import re
from typing import Annotated

import typer

from srvstat.asgi.settings import MAX_DELAY_SECONDS, RehearsalSettings
from srvstat.cli.options import parse_count
from srvstat.contract.errors import UsageError
from srvstat.contract.wire import quote_value

_DEFAULT_SEED = 1

_TIME = "([0-9]{1,6}(?:[.][0-9]{1,3})?)(ms|s)"
_DELAY = re.compile(rf"{_TIME}(?:[.][.]{_TIME})?")
_SHARE = re.compile("([0-9]{1,3}(?:[.][0-9]{1,3})?)%")

DelayOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME[..TIME]",
        envvar="SRVSTAT_DELAY",
        help="Let each request take at least this time, such as 200ms, or a random one, such as"
        " 50ms..2s.",
    ),
]
FailOption = Annotated[
    str | None,
    typer.Option(
        metavar="P%",
        envvar="SRVSTAT_FAIL",
        help="Answer this share of the requests with a 500.",
    ),
]
DropOption = Annotated[
    str | None,
    typer.Option(
        metavar="P%",
        envvar="SRVSTAT_DROP",
        help="Close the connection instead of answering this share of the requests.",
    ),
]
SeedOption = Annotated[
    str | None,
    typer.Option(
        metavar="N",
        envvar="SRVSTAT_SEED",
        help="The seed of random delays, failures and drops; the same number repeats them"
        f" [default: {_DEFAULT_SEED}].",
    ),
]
AllowPreferOption = Annotated[
    bool,
    typer.Option(
        "--allow-prefer",
        envvar="SRVSTAT_ALLOW_PREFER",
        help="Let a request choose its error with a header such as Prefer: code=429.",
    ),
]


def parse_rehearsal(
    delay: str | None, fail: str | None, drop: str | None, seed: str | None, *, allow_prefer: bool
) -> RehearsalSettings | None:
    """Return the settings of the options; None if they rehearse nothing.

    Raises UsageError.
    """
    if seed is not None and delay is None and fail is None and drop is None:
        raise UsageError("--seed: nothing to draw; add --delay, --fail or --drop")
    settings = RehearsalSettings(
        delay=None if delay is None else _parse_delay(delay),
        fail=_parse_share("--fail", fail),
        drop=_parse_share("--drop", drop),
        seed=_DEFAULT_SEED if seed is None else parse_count("--seed", seed, least=0),
        allows_prefer=allow_prefer,
    )
    is_on = settings.delay or settings.fail or settings.drop or allow_prefer
    return settings if is_on else None


def describe_rehearsal(settings: RehearsalSettings) -> str:
    """Return the options of settings, as for a command line."""
    parts = []
    if settings.delay:
        shortest, longest = map(_format_time, settings.delay)
        parts.append(f"--delay {shortest}" + (f"..{longest}" if longest != shortest else ""))
    parts += [
        f"--{name} {100 * share:.9g}%"
        for name, share in (("fail", settings.fail), ("drop", settings.drop))
        if share
    ]
    if parts:
        parts.append(f"--seed {settings.seed}")
    if settings.allows_prefer:
        parts.append("--allow-prefer")
    return " ".join(parts)


def _parse_delay(text: str) -> tuple[float, float] | None:
    """Return the shortest and the longest delay in seconds; None if both are 0."""
    found = _DELAY.fullmatch(text)
    if not found:
        raise UsageError(
            f"--delay: {quote_value(text)} is not a time; write 200ms, 1.5s or 50ms..2s"
        )
    shortest = _compute_seconds(found[1], found[2])
    longest = _compute_seconds(found[3], found[4]) if found[3] else shortest
    if longest > MAX_DELAY_SECONDS:
        raise UsageError(
            f"--delay: {quote_value(text)} is too long; at most {MAX_DELAY_SECONDS}s, so that the"
            " answer arrives before the service closes the connection"
        )
    if shortest > longest:
        raise UsageError(f"--delay: {quote_value(text)} begins with the longer time; swap the two")
    return (shortest, longest) if longest else None


def _compute_seconds(number: str, unit: str) -> float:
    return float(number) / (1_000 if unit == "ms" else 1)


def _parse_share(option: str, text: str | None) -> float:
    """Return a share from 0 to 1; 0 without the option."""
    if text is None:
        return 0.0
    found = _SHARE.fullmatch(text)
    share = float(found[1]) / 100 if found else None
    if share is None or share > 1:
        raise UsageError(f"{option}: {quote_value(text)} is not a share from 0% to 100%")
    return share


def _format_time(seconds: float) -> str:
    return f"{seconds:.9g}s" if seconds >= 1 else f"{1_000 * seconds:.9g}ms"
