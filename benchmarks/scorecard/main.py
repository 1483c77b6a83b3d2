"""Compares our rule with others': how often each is red without a cause, and what it finds.

    make scorecard                      # everything, about half an hour on two cores
    make scorecard ARGS="--small"       # only shows that it works

Writes ``scorecard.json`` and ``scorecard.svg``; the same seed gives the same numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from benchmarks.scorecard.document import compose, plan_as_values
from benchmarks.scorecard.environment import Peers, peers_environment
from benchmarks.scorecard.plan import SEED, SMALL, Plan
from benchmarks.scorecard.plot import draw_scorecard
from benchmarks.scorecard.self_check import check_asv
from benchmarks.scorecard.table import print_scorecard
from benchmarks.scorecard.targets import check_all
from benchmarks.scorecard.work import ask_otava, judge_all

BUILD = Path(__file__).parents[2] / "build" / "scorecard"


def run(plan: Plan, output: Path, *, console: Console, processes: int, with_peers: bool) -> None:
    """A whole scorecard, into a folder."""
    began = time.monotonic()
    output.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(1) as background:
        installing = background.submit(peers_environment, BUILD) if with_peers else None
        results = judge_all(plan, processes)
        peers = installing.result() if installing else Peers(None, "it was not asked for")
    ask_otava(results, peers, output)
    card = compose(plan, results, peers, {"asv": check_asv(peers, output)})
    targets = check_all(plan, results)
    card |= {"plan": plan_as_values(plan), "targets": [target.plain() for target in targets]}
    print_scorecard(console, card, targets)
    draw_scorecard(card, output / "scorecard.svg")
    (output / "scorecard.json").write_text(json.dumps(card, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    console.print(f"{time.monotonic() - began:.0f} s with {processes} processes; seed {plan.seed}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="so few runs that the numbers mean nothing")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--without-peers", action="store_true", help="neither install nor ask Otava and asv")
    parser.add_argument("--output", type=Path, default=BUILD)
    return parser.parse_args()


def main() -> None:
    options = arguments()
    plan = replace(SMALL if options.small else Plan(), seed=options.seed)
    console = Console(width=200)
    run(plan, options.output, console=console, processes=options.processes, with_peers=not options.without_peers)
    print(options.output)


if __name__ == "__main__":
    main()
