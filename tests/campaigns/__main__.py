"""Run campaigns: `cd tests && python -m campaigns [NAME…] [--long]`.

With --save, stores the results in docs/reliability.json, for docs/explanation/reliability.md.
"""

import argparse
import json
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

from campaigns import damage, faults, hostile, kills, large, limits, requests, text
from campaigns.campaign import Campaign, Result
from srvstat import __version__
from srvstat.snapshot.rows import FORMAT_VERSION

_ALL: tuple[Campaign, ...] = (
    damage.CAMPAIGN,
    hostile.CAMPAIGN,
    requests.CAMPAIGN,
    text.CAMPAIGN,
    faults.BUILDS,
    faults.UPDATES,
    faults.BUNDLES,
    faults.EXPORTS,
    kills.KILLS,
    kills.INTERRUPTIONS,
    kills.PAUSES,
    limits.CAMPAIGN,
    large.CAMPAIGN,
)
CAMPAIGNS = {campaign.name: campaign for campaign in _ALL}

RESULTS = Path(__file__).parents[2] / "docs" / "reliability.json"
MAX_FAILURES_PRINTED = 20


def main() -> int:
    """Run the named campaigns, or all; return the number that failed or could not run."""
    parser = argparse.ArgumentParser(prog="python -m campaigns", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CAMPAIGNS))
    parser.add_argument("--seed", type=int, default=1, help="seed of the cases [1]")
    parser.add_argument("--count", type=int, help="number of cases [that of the short form]")
    parser.add_argument("--long", action="store_true", help="run the long form")
    parser.add_argument("--save", action="store_true", help="save the result")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(CAMPAIGNS):
        parser.error(f"unknown campaign: {', '.join(sorted(unknown))}")
    failed = 0
    for campaign in [CAMPAIGNS[name] for name in arguments.names or CAMPAIGNS]:
        count = arguments.count or (campaign.long if arguments.long else campaign.short)
        if missing := campaign.list_missing_programs():
            print(f"{campaign.name}: not run; needs {', '.join(missing)}", flush=True)
            failed += 1
            continue
        failed += not _run_campaign(campaign, arguments.seed, count, save=arguments.save)
    return failed


def _run_campaign(campaign: Campaign, seed: int, count: int, *, save: bool) -> bool:
    """Run a campaign, print its result, and return whether its promise held."""
    started = time.monotonic()
    result = campaign.run(seed, count)
    seconds = time.monotonic() - started
    outcomes = "; ".join(f"{count:,} {name}" for name, count in result.counts.items())
    print(f"{campaign.name}: {result.cases:,} {campaign.unit} in {seconds:.0f} s: {outcomes}")
    print(f"  promise: {campaign.promise}")
    print(f"  {len(result.failures)} failures", flush=True)
    for failure in result.failures[:MAX_FAILURES_PRINTED]:
        print(f"    {failure}", flush=True)
    if save:
        _save_result(campaign, seed, seconds, result)
    return not result.failures


def _save_result(campaign: Campaign, seed: int, seconds: float, result: Result) -> None:
    results: dict[str, Any] = json.loads(RESULTS.read_bytes()) if RESULTS.exists() else {}
    results[campaign.name] = {
        "date": date.today().isoformat(),  # noqa: DTZ011 - the user's date
        "version": __version__,
        "format": FORMAT_VERSION,
        "unit": campaign.unit,
        "seed": seed,
        "cases": result.cases,
        "seconds": round(seconds),
        "counts": dict(result.counts),
        "failures": len(result.failures),
    }
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
