"""Measures a study, or writes the pages of all: ``python -m studies measure NAME``, ``python -m studies write``."""

from __future__ import annotations

import argparse
import sys

from studies.measure import measure
from studies.model import NAMES, read_study
from studies.pages import write_pages


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m studies", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("measure", help="run a study's commands, and keep their results")
    measuring.add_argument("study", choices=NAMES)
    measuring.add_argument("runs", nargs="*", help="names of the runs; by default all")
    commands.add_parser("write", help="write the pages and drawings of the recorded results")
    chosen = parser.parse_args()
    if chosen.command == "write":
        write_pages()
        return 0
    return measure(read_study(chosen.study), chosen.runs)


if __name__ == "__main__":
    sys.exit(main())
