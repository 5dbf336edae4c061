"""Repeat a case of `flips` or `damage`: `cd tests && python -m campaigns.rerun NAME SEED CASE`.

Writes the damaged file to damaged.db in the current directory.
"""

import sys

from campaigns import damage, flips
from campaigns.questions import ask_everything, find_wrong_answers
from campaigns.trials import Draw, read_truths
from campaigns.workers import build_originals

DRAWS: dict[str, Draw] = {"flips": flips.draw, "damage": damage.draw}
PATH = "damaged.db"


def main(name: str, seed: str, number: str) -> int:
    """Damage the file as in the case and print the wrong answers; return 1 if there are any."""
    with build_originals() as (originals, _):
        truths = read_truths(originals, PATH)
        case = DRAWS[name](originals, int(seed), int(number))
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
