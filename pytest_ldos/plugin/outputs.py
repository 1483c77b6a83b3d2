"""The outputs of a session: reports, pytest-benchmark's JSON, the history, and a summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from pytest_ldos.base.errors import LdosError
from pytest_ldos.base.text import Rendered
from pytest_ldos.plugin.history import HistoryWriter
from pytest_ldos.plugin.messages import begin_section, write_line, write_rendered
from pytest_ldos.plugin.reporting import append_job_summary, refuse_unwritable, write_report
from pytest_ldos.plugin.run_record import Books
from pytest_ldos.plugin.scenario_run import ScenarioRun

Write = Callable[[], str]
"""Writes one output; returns a line on its location."""


class Outputs:
    """The outputs of one session. One that cannot be written is reported in the summary, and loses no other.

    Attributes:
        is_whole: true if all outputs could be written.
    """

    def __init__(self, books: Books) -> None:
        self._settings, self._record, self._ledger = books
        self._history = HistoryWriter(books)
        self._lines: list[str] = []
        self.is_whole = True

    def require_writable(self) -> None:
        """Refuses the session before anything is measured if an output cannot be written."""
        if self._settings.config.option.collectonly:
            return
        for file in (*self._reports, *self._benchmark_files):
            refuse_unwritable(file)
        self._history.require_writable()

    def write(self) -> None:
        """Writes what was asked for, reports first."""
        for what, write in self._requested():
            try:
                self._lines.append(write())
            except Exception as error:  # noqa: BLE001 - whatever is wrong with one, the others are to be written
                self.is_whole = False
                self._lines.append(f"the {what}: {_reason(error)}")
        self._history.write()
        self.is_whole = self.is_whole and not self._history.fault

    @property
    def _reports(self) -> list[Path]:
        return [self._settings.folder / file for file in self._settings.value("report")]

    @property
    def _benchmark_files(self) -> list[Path]:
        """The file of ``--ldos-benchmark-json``, if any."""
        file = self._settings.value("benchmark_json")
        return [] if file is None else [self._settings.folder / file]

    def _requested(self) -> Iterator[tuple[str, Write]]:
        if self._ledger.sections:
            from pytest_ldos.show.report.compose import compose

            document = compose(self._ledger.sections)
            for file in self._reports:
                yield f"report could not be written: {file}", partial(write_report, document, file)
            if self._settings.value("summary"):
                yield "job summary could not be written", partial(append_job_summary, document)
        if self._record.trial_sets:
            for file in self._benchmark_files:
                yield f"benchmark JSON could not be written: {file}", partial(self._write_benchmark, file)

    def _write_benchmark(self, file: Path) -> str:
        from pytest_ldos.base.writable import write_atomically
        from pytest_ldos.show.export.benchmark_json import left_out_of_benchmarks, render_benchmark_json

        measured = [(each, run.series_of(each)) for run in self._record.runs for each in run.trial_sets]
        write_atomically(file, render_benchmark_json(measured))
        left_out = ", ".join(left_out_of_benchmarks(measured))
        reason = f"; left out, as it holds only times to be minimised: {left_out}" if left_out else ""
        return f"benchmark JSON: {file}{reason}"

    def summarize(self, reporter: pytest.TerminalReporter) -> None:
        """Prints the table of each scenario, and the locations of the outputs."""
        ledger, runs = self._ledger, self._record.runs
        if not runs and not ledger.sections and not ledger.refusals:
            return
        from pytest_ldos.show.report.compose import compose
        from pytest_ldos.show.report.terminal import render
        from pytest_ldos.show.report.words import title_of

        writer = reporter._tw  # noqa: SLF001 - how pytest's own summaries learn the width
        begin_section(reporter, title_of(compose(ledger.sections).stacks).removesuffix(":"))
        if ledger.begun_sections:
            document = compose(ledger.begun_sections)
            shown = render(
                document,
                width=writer.fullwidth,
                color=writer.hasmarkup,
                setting=False,
                details=reporter.verbosity > 0,
            )
            write_rendered(reporter, Rendered(shown.lstrip("\n")))
        if ledger.refusals:
            write_line(reporter, f"tests refused before anything was measured: {len(ledger.refusals)}; see above")
        for nodeid in sorted(ledger.unreported):
            write_line(reporter, f"{nodeid}: pytest reports no failure of it; its first outcome fails this run")
        unfinished = (line for run in runs for line in _unfinished(run))
        took = (_duration(run) for run in runs if reporter.verbosity > 0 and run.clock.durations)
        for line in (*self._lines, *unfinished, *took, *self._places()):
            write_line(reporter, line)

    def _places(self) -> Iterator[str]:
        """Lines on the run's folder, the history, and folders that were deleted to make room."""
        from pytest_ldos.measure.trial.artifacts import enforce_disk_limit

        settings, folder = self._settings, self._record.folder
        if folder is None or not folder.exists():
            return
        yield f"results: {folder}"
        yield from self._history.summary()
        for dropped in enforce_disk_limit(settings.output, limit_bytes=settings.traces_limit_bytes, keep=folder):
            yield f"deleted to stay within {settings.value('traces_limit_mb')} MB: {dropped}"


def _duration(run: ScenarioRun) -> str:
    """A line on where the time of a run went."""
    from pytest_ldos.measure.trial.phases import describe_durations

    return (
        f"{run.spec.name}: took {(run.ended_ns - run.began_ns) / 1e9:.1f} s: {describe_durations(run.clock.durations)}"
    )


def _unfinished(run: ScenarioRun) -> Iterator[str]:
    """Lines on trials that were not finished, or not judged."""
    left = [each.path for each in (run.folder, run.folder.base) if each.trials_file.exists()]
    if left and not run.trial_sets:
        where = ", ".join(f"ldos report {each}" for each in left)
        yield f"{run.spec.name}: not finished; what was measured: {where}"
    if run.unjudged:
        yield f"{run.nodeid}: trials were made but never judged; call ldos_gate.check(trials)"


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return error.summary if isinstance(error, LdosError) else f"{type(error).__name__}: {error}"
