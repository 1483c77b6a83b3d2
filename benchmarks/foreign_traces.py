"""Compares our reading of other projects' traces with babeltrace2's, in a table.

    make foreign-traces ARGS="DIRECTORY..."   # each holds traces, at any depth

Every directory with a file named `metadata` is read by both: every event, its time, its CPU and all its
fields. Public collections of CTF traces lie in the repositories of babeltrace and of Trace Compass.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.oracles.agreement import Agreement, Outcome, compare_with_babeltrace
from tests.oracles.babeltrace import why_unavailable

console = Console(width=150)


def traces_below(collection: Path) -> list[Path]:
    return sorted(path.parent for path in collection.rglob("metadata") if path.is_file())


def compare(collection: Path) -> Iterator[tuple[Path, Agreement]]:
    for trace in traces_below(collection):
        yield trace.relative_to(collection), compare_with_babeltrace(trace)


def show_counts(counts: dict[str, Counter[Outcome]], events: Counter[str]) -> None:
    table = Table("collection", "traces", "events", *(outcome.value for outcome in Outcome))
    for name, count in counts.items():
        numbers = (str(count[outcome]) for outcome in Outcome)
        table.add_row(name, str(count.total()), str(events[name]), *numbers)
    console.print(table)


def show_others(results: list[tuple[Path, Agreement]]) -> None:
    """Differences, with similar traces in one row."""
    alike: dict[tuple[str, ...], list[Path]] = defaultdict(list)
    for path, found in results:
        if found.outcome is not Outcome.EQUAL:
            note = " (each stream alone is equal)" if found.is_equal_by_stream else ""
            alike[found.outcome, found.difference, found.ours, found.theirs + note].append(path)
    table = Table("outcome", "trace", "we", "babeltrace2", show_lines=True)
    for (outcome, difference, ours, theirs), paths in sorted(alike.items()):
        others = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        table.add_row(outcome, f"{paths[0]}{others}", difference or ours, theirs)
    console.print(table)


def main(collections: list[Path]) -> int:
    if why_unavailable() or not collections:
        print(why_unavailable() or __doc__, file=sys.stderr)
        return 1
    counts: dict[str, Counter[Outcome]] = {}
    events: Counter[str] = Counter()
    results = []
    for collection in collections:
        found = list(compare(collection))
        counts[collection.name] = Counter(agreement.outcome for _, agreement in found)
        events[collection.name] = sum(agreement.events for _, agreement in found)
        results += found
    show_counts(counts, events)
    show_others(results)
    return 0


if __name__ == "__main__":
    sys.exit(main([Path(argument) for argument in sys.argv[1:]]))
