"""Run a case of `flips` or `damage` again: `cd tests && python -m campaigns.again NAME SEED CASE`.

The damaged file is left as damaged.db in the current directory.
"""

import sys

from campaigns import damage, flips
from campaigns.questions import answers_of, wrong_ones
from campaigns.trials import Draw, truths_of
from campaigns.workers import small_snapshots

DRAWS: dict[str, Draw] = {"flips": flips.draw, "damage": damage.draw}
PATH = "damaged.db"


def main(name: str, seed: str, number: str) -> int:
    """Damage the file as the case did, and print what it says that is not true."""
    with small_snapshots() as (originals, _):
        truth = truths_of(originals, PATH)
        case = DRAWS[name](originals, int(seed), int(number))
    with open(PATH, "wb") as file:
        file.write(case.applied(originals.small))
    print(f"{PATH}: {case.text}")
    found, right = answers_of(PATH), truth.of(case)
    wrong = wrong_ones(found, right)
    for question in wrong:
        print(f"{question}:\n  {found[question]}\n  and should say\n  {right[question]}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
