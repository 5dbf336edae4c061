"""Repeat a case of damage: `cd tests && python -m campaigns.rerun flips|damage|bundles SEED CASE`.

Writes the damaged file to damaged.db in the current directory.
"""

import sys

from campaigns import bundles, damage, flips
from campaigns.questions import ask_everything, find_wrong_answers
from campaigns.small_snapshots import build_small_bundle, build_small_snapshot
from campaigns.trials import Draw, read_truths
from campaigns.workers import Build, build_originals

DRAWS: dict[str, tuple[Draw, Build]] = {
    "flips": (flips.draw, build_small_snapshot),
    "damage": (damage.draw, build_small_snapshot),
    "bundles": (bundles.draw, build_small_bundle),
}
PATH = "damaged.db"


def main(name: str, seed: str, number: str) -> int:
    """Damage the file as in the case and print the wrong answers; return 1 if there are any."""
    draw, build = DRAWS[name]
    with build_originals(build) as (originals, _):
        truths = read_truths(originals, PATH)
        case = draw(originals, int(seed), int(number))
    with open(PATH, "wb") as file:
        file.write(case.apply(originals.small))
    print(f"{PATH}: {case.text}")
    found, expected = ask_everything(PATH), truths.select(case)
    wrong = find_wrong_answers(found, expected)
    for question in wrong:
        print(f"{question}:\n  got {found[question]}\n  expected {expected[question]}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
