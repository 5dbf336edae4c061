"""Run campaigns: `cd tests && python -m campaigns [NAME…] [--seed N] [--count N] [--long]`.

With --long the results are kept in docs/reliability.json, which docs/reliability.md shows.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from campaigns import CAMPAIGNS
from campaigns.campaign import Campaign, Result

RESULTS = Path(__file__).parents[2] / "docs" / "reliability.json"
MOST_SHOWN = 20


def main() -> int:
    """Run what is named, or all, and return how many campaigns found something or could not run."""
    parser = argparse.ArgumentParser(prog="python -m campaigns", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CAMPAIGNS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, help="how many cases, instead of the short form's")
    parser.add_argument("--long", action="store_true", help="the long form; its result is kept")
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(CAMPAIGNS):
        parser.error(f"no campaign {', '.join(sorted(unknown))}")
    failed = 0
    for campaign in [CAMPAIGNS[name] for name in asked.names or CAMPAIGNS]:
        count = asked.count or (campaign.long if asked.long else campaign.short)
        if missing := campaign.missing():
            print(f"{campaign.name}: not run, it needs {', '.join(missing)}", flush=True)
            failed += 1
            continue
        if count:
            failed += not _run(campaign, asked.seed, count, keep=asked.long)
    return failed


def _run(campaign: Campaign, seed: int, count: int, *, keep: bool) -> bool:
    """Run a campaign, tell what it found, and say whether its promise held."""
    started = time.monotonic()
    result = campaign.run(seed, count)
    seconds = time.monotonic() - started
    outcomes = ", ".join(f"{number:,} {outcome}" for outcome, number in result.counts.items())
    print(f"{campaign.name}: {result.cases:,} {campaign.unit} in {seconds:.0f} s: {outcomes}")
    print(f"  {len(result.failures)} broke the promise: {campaign.promise}", flush=True)
    for failure in result.failures[:MOST_SHOWN]:
        print(f"    {failure}", flush=True)
    if keep:
        _keep(campaign.name, seed, seconds, result)
    return not result.failures


def _keep(name: str, seed: int, seconds: float, result: Result) -> None:
    kept: dict[str, Any] = json.loads(RESULTS.read_bytes()) if RESULTS.exists() else {}
    kept[name] = {
        "seed": seed,
        "cases": result.cases,
        "seconds": round(seconds),
        "counts": dict(result.counts),
        "failures": len(result.failures),
    }
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
