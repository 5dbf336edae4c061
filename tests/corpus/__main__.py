"""Run the transcripts, and show what the program says now and did not say before.

    cd tests && python -m corpus [--write] [NAME...]

Exits with 5 if there is a difference and it is not written.
"""

import gc
import sys
from argparse import ArgumentParser

from corpus.sessions import TRANSCRIPTS, compare_transcript

_DIFFERENT = 5

_parser = ArgumentParser("corpus", description="Compare what the program says with the corpus.")
_parser.add_argument("names", nargs="*", metavar="NAME", help="a transcript, such as compare")
_parser.add_argument("--write", action="store_true", help="store what the program says now")


def main() -> int:
    """Compare transcripts, and return the exit code."""
    options = _parser.parse_args()
    paths = [TRANSCRIPTS / f"{name}.txt" for name in options.names]
    changed = []
    for path in paths or sorted(TRANSCRIPTS.iterdir()):
        if difference := compare_transcript(path, writes=options.write):
            sys.stdout.writelines(difference)
            added = sum(line.startswith("+") for line in difference) - 1
            removed = sum(line.startswith("-") for line in difference) - 1
            changed.append(f"{path.name}: {added} lines added, {removed} removed\n")
    gc.enable()  # DuckDB complains of what is not collected at the end
    gc.unfreeze()
    sys.stdout.writelines(["\n", *changed] if changed else ["nothing changed\n"])
    return _DIFFERENT if changed and not options.write else 0


if __name__ == "__main__":
    sys.exit(main())
