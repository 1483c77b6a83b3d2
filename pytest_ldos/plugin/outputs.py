"""The outputs of a session: reports, pytest-benchmark's JSON, the history, and a summary."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from pytest_ldos.base.errors import LdosError, Unavailable
from pytest_ldos.base.text import Rendered, counted
from pytest_ldos.plugin.messages import begin_section, refused_session, usage_error, write_line, write_rendered
from pytest_ldos.plugin.run_record import SessionParts
from pytest_ldos.plugin.scenario_run import ScenarioRun

if TYPE_CHECKING:
    from pytest_ldos.judge.baseline.history.rows import Version
    from pytest_ldos.judge.baseline.history.store import HistoryStore
    from pytest_ldos.measure.trial.record import TrialSet
    from pytest_ldos.show.report.document import Document


_SET: Final = "set of trials"
_SETS: Final = "sets of trials"


class HistoryWriter:
    """The history of one session; does nothing without one.

    Attributes:
        fault: the reason why it could not be written; empty if it could.
    """

    def __init__(self, parts: SessionParts) -> None:
        self._settings, self._record, self._ledger = parts
        self._added = 0
        self._left_out: list[str] = []
        self.fault = ""

    @property
    def _directory(self) -> Path | None:
        """The folder of the history; ``None`` without one."""
        given = self._settings.value("history")
        return None if given is None else self._settings.root / given

    def require_writable(self) -> None:
        """Refuses the session, before measuring, if the history cannot be written."""
        if self._directory is None:
            return
        from pytest_ldos.judge.baseline.history.store import HistoryStore

        with refused_session():
            HistoryStore(self._directory).require_writable()

    def write(self) -> None:
        """Adds judged trials, and those of an interleaved base; errors do not affect the run's own record."""
        if self._directory is None or not any(run.judged or run.interleaved for run in self._record.runs):
            return
        from pytest_ldos.judge.baseline.history.rows import Version
        from pytest_ldos.judge.baseline.history.store import HistoryStore, branch_of
        from pytest_ldos.judge.judging import verdict_alone

        store = HistoryStore(self._directory)
        try:
            branch = "" if self._settings.value("head") else branch_of(self._settings.root)
            for run in self._record.runs:
                name = run.folder.path.parent.name
                for trials, result in run.judged:
                    verdict = result.verdict.value
                    self._add(store, trials, run=name, branch=branch, verdict=verdict, version=Version.HEAD)
                for base in (each.base for each in run.interleaved):
                    alone = verdict_alone(base, self._ledger.policy)
                    self._add(store, base, run=name, branch="", verdict=alone, version=Version.BASE)
        except Exception as error:  # noqa: BLE001 - after any error, the run's record can be added later
            self.fault = str(error) if isinstance(error, LdosError | OSError) else f"{type(error).__name__}: {error}"

    def _add(
        self, store: HistoryStore, trials: TrialSet, *, run: str, branch: str, verdict: str, version: Version
    ) -> None:
        from pytest_ldos.judge.baseline.history.rows import build_rows, why_left_out

        rows = build_rows(trials, run=run, branch=branch, verdict=verdict, version=version)
        if rows.is_empty():
            self._left_out.append(why_left_out(trials, verdict) or "empty")
        else:
            self._added += store.append(rows)

    def summary(self) -> Iterator[str]:
        """Lines on added and omitted trials, and on errors."""
        for reason, count in Counter(self._left_out).items():
            yield f"history: {counted(count, _SET, _SETS)} not added: {reason}"
        if self._added:
            yield f"history: {counted(self._added, _SET, _SETS)} added; ldos history --dir {self._directory}"
        if self.fault:
            yield f"history: not written: {self.fault}"
            yield f"  → add this run later: ldos history import {self._record.folder} --dir {self._directory}"


_JOB_SUMMARY: Final = "GITHUB_STEP_SUMMARY"
_HTML: Final = ".html"


def refuse_unavailable(files: Sequence[Path]) -> None:
    """Refuses, before measuring, a format whose library is missing."""
    if not any(file.suffix == _HTML for file in files):
        return
    from pytest_ldos.show.page.formats import Format, require_format

    try:
        require_format(Format.HTML)
    except Unavailable as error:
        raise usage_error(str(error)) from None


def refuse_unwritable(file: Path) -> None:
    """Refuses, before measuring, a file that cannot be written; creates its folder.

    Raises:
        pytest.UsageError: it is a folder, or its folder cannot be made or written.
        pytest.exit.Exception: another error, such as a full disk.
    """
    from pytest_ldos.base.writable import require_writable_file

    with refused_session():
        require_writable_file(file)


def write_report(document: Document, file: Path) -> str:
    """Writes a report in the format of its suffix; returns a line on its location.

    Raises:
        OSError: it cannot be written.
    """
    from pytest_ldos.base.writable import write_atomically
    from pytest_ldos.show.page.formats import format_of
    from pytest_ldos.show.report.formats import render_as

    write_atomically(file, render_as(document, format_of(file)))
    return f"report: {file}"


def append_job_summary(document: Document) -> str:
    """Appends the report to the summary of the present workflow job; returns a line on it.

    Raises:
        OSError: it cannot be written.
    """
    from pytest_ldos.show.report import markdown

    file = os.environ.get(_JOB_SUMMARY, "")
    if not file:
        return f"no job summary: {_JOB_SUMMARY} is not set (this is not a job of a GitHub workflow)"
    from pytest_ldos.base.writable import writing

    with writing(Path(file)), Path(file).open("a", encoding="utf-8") as stream:
        stream.write(markdown.render(document))
    return f"job summary: {file}"


Write = Callable[[], str]
"""Writes one output; returns a line on its location."""


class Outputs:
    """The outputs of one session. A failed output is reported in the summary and does not affect the others.

    Attributes:
        is_whole: True if all outputs could be written.
    """

    def __init__(self, parts: SessionParts) -> None:
        self._settings, self._record, self._ledger = parts
        self._history = HistoryWriter(parts)
        self._lines: list[str] = []
        self.is_whole = True

    def require_writable(self) -> None:
        """Refuses the session, before measuring, if an output cannot be written."""
        if self._settings.config.option.collectonly:
            return
        for file in (*self._reports, *self._benchmark_files):
            refuse_unwritable(file)
        self._history.require_writable()

    def write(self) -> None:
        """Writes the requested outputs, reports first."""
        for what, write in self._requested():
            try:
                self._lines.append(write())
            except Exception as error:  # noqa: BLE001 - after any error in one, the others are still written
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

        writer = reporter._tw  # noqa: SLF001 - pytest's own summaries use it for the width
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
        """Lines on the run's folder, the history, and folders deleted to make room."""
        from pytest_ldos.measure.trial.artifacts import enforce_disk_limit

        settings, folder = self._settings, self._record.folder
        if folder is None or not folder.exists():
            return
        yield f"results: {folder}"
        yield from self._history.summary()
        for dropped in enforce_disk_limit(settings.output, limit_bytes=settings.traces_limit_bytes, keep=folder):
            yield f"deleted to stay within {settings.value('traces_limit_mb')} MB: {dropped}"


def _duration(run: ScenarioRun) -> str:
    """A line on the durations of a run's phases."""
    from pytest_ldos.measure.trial.phases import describe_durations

    return (
        f"{run.spec.name}: took {(run.ended_ns - run.began_ns) / 1e9:.1f} s: {describe_durations(run.clock.durations)}"
    )


def _unfinished(run: ScenarioRun) -> Iterator[str]:
    """Lines on trials that were not completed, or not judged."""
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
