"""Progress of commands that read, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

_LINES: Final = 10
"""Lines of progress where nothing can be rewritten."""

Steps = Callable[[str, int, int], None]
"""Shows a step by name, and how much of how much of it is done."""


@contextmanager
def step_bar() -> Iterator[Steps]:
    """A bar for steps of one thing after another; nothing where that is no terminal."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("", total=1)

        def show(step: str, done: int = 0, of: int = 1) -> None:
            progress.update(task, description=step, completed=done, total=max(of, 1))

        yield show


@contextmanager
def trace_bar(count: int) -> Iterator[Callable[[], None]]:
    """A bar of traces, told when one more is done; elsewhere a line each tenth."""
    if not sys.stderr.isatty():
        yield _LinesOfTraces(count)
        return
    columns = (TextColumn("traces"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=count)
        yield lambda: bar.advance(task)


class _LinesOfTraces:
    def __init__(self, count: int) -> None:
        self._made, self._count = 0, count

    def __call__(self) -> None:
        self._made += 1
        if self._made * _LINES // self._count > (self._made - 1) * _LINES // self._count:
            sys.stderr.write(f"{self._made} of {self._count} traces\n")
            sys.stderr.flush()
