"""The outputs of a session: reports, pytest-benchmark's JSON, the history, and a summary."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from pytest_ldos.base.errors import LdosError
from pytest_ldos.base.files import require_writable_file, write_atomically, writing
from pytest_ldos.base.text import Rendered, counted
from pytest_ldos.plugin.messages import begin_section, refused_session, write_line, write_rendered
from pytest_ldos.plugin.runs import ScenarioRun, SessionParts

if TYPE_CHECKING:
    from pytest_ldos.measure.trial.record import TrialSet
    from pytest_ldos.show.report.document import Document


_SET: Final = "set of trials"
_SETS: Final = "sets of trials"


class HistoryWriter:
    """The history of one session, if one is set; `fault` is the reason if it could not be written."""

    def __init__(self, parts: SessionParts) -> None:
        self._settings, self._record, self._ledger = parts
        given = self._settings.value("history")
        self._directory = None if given is None else self._settings.root / given
        self._added = 0
        self._left_out: list[str] = []
        self.fault = ""

    def require_writable(self) -> None:
        if self._directory is not None:
            from pytest_ldos.judge.baseline.history import HistoryStore

            HistoryStore(self._directory).require_writable()

    def write(self) -> None:
        """Adds judged trials, and those of an interleaved base; errors do not affect the run's own record."""
        if self._directory is None or not any(run.judged or run.interleaved for run in self._record.runs):
            return
        from pytest_ldos.judge.baseline.history import HistoryStore, Version, branch_of, build_rows, why_left_out
        from pytest_ldos.judge.judging import verdict_alone

        store = HistoryStore(self._directory)

        def add(trials: TrialSet, run: ScenarioRun, branch: str, verdict: str, version: Version) -> None:
            rows = build_rows(trials, run=run.folder.path.parent.name, branch=branch, verdict=verdict, version=version)
            if rows.is_empty():
                self._left_out.append(why_left_out(trials, verdict) or "empty")
            else:
                self._added += store.append(rows)

        try:
            branch = "" if self._settings.value("head") else branch_of(self._settings.root)
            for run in self._record.runs:
                for trials, result in run.judged:
                    add(trials, run, branch, result.verdict.value, Version.HEAD)
                for base in (each.base for each in run.interleaved):
                    add(base, run, "", verdict_alone(base, self._ledger.policy), Version.BASE)
        except Exception as error:  # noqa: BLE001 - after any error, the run's record can be added later
            self.fault = str(error) if isinstance(error, LdosError | OSError) else f"{type(error).__name__}: {error}"

    def summary(self) -> Iterator[str]:
        for reason, count in Counter(self._left_out).items():
            yield f"history: {counted(count, _SET, _SETS)} not added: {reason}"
        if self._added:
            yield f"history: {counted(self._added, _SET, _SETS)} added; ldos history --dir {self._directory}"
        if self.fault:
            yield f"history: not written: {self.fault}"
            yield f"  → add this run later: ldos history import {self._record.folder} --dir {self._directory}"


_JOB_SUMMARY: Final = "GITHUB_STEP_SUMMARY"


def refuse_unavailable(files: Sequence[Path]) -> None:
    """Refuses, before measuring, a page whose libraries are missing."""
    if any(file.suffix == ".html" for file in files):
        from pytest_ldos.show.page.formats import Format, require_format

        with refused_session():
            require_format(Format.HTML)


class Outputs:
    """The outputs of one session; one that fails is reported in the summary and does not affect the others."""

    def __init__(self, parts: SessionParts) -> None:
        self._settings, self._record, self._ledger = parts
        self._history = HistoryWriter(parts)
        folder, benchmarks = self._settings.folder, self._settings.value("benchmark_json")
        self._reports = [folder / file for file in self._settings.value("report")]
        self._benchmarks = [] if benchmarks is None else [folder / benchmarks]
        self._lines: list[str] = []
        self.is_whole = True

    def require_writable(self) -> None:
        """Refuses, before measuring, outputs that cannot be written; makes their folders."""
        if self._settings.config.option.collectonly:
            return
        with refused_session():
            for file in (*self._reports, *self._benchmarks):
                require_writable_file(file)
            self._history.require_writable()

    def write(self) -> None:
        if self._ledger.sections:
            from pytest_ldos.show.report.compose import compose

            document = compose(self._ledger.sections)
            for file in self._reports:
                self._try(f"report could not be written: {file}", partial(_write_report, document, file))
            if self._settings.value("summary"):
                self._try("job summary could not be written", partial(_append_job_summary, document))
        for file in self._benchmarks if any(run.trial_sets for run in self._record.runs) else ():
            self._try(f"benchmark JSON could not be written: {file}", partial(self._write_benchmark, file))
        self._history.write()
        self.is_whole = self.is_whole and not self._history.fault

    def _try(self, what: str, write: Callable[[], str]) -> None:
        try:
            self._lines.append(write())
        except Exception as error:  # noqa: BLE001 - after any error in one, the others are still written
            self.is_whole = False
            reason = f"{type(error).__name__}: {error}"
            if isinstance(error, OSError):
                reason = error.strerror or str(error)
            elif isinstance(error, LdosError):
                reason = error.summary
            self._lines.append(f"the {what}: {reason}")

    def _write_benchmark(self, file: Path) -> str:
        from pytest_ldos.show.export.other_tools import left_out_of_benchmarks, render_benchmark_json

        measured = [(each, run.series_of(each)) for run in self._record.runs for each in run.trial_sets]
        write_atomically(file, render_benchmark_json(measured))
        left_out = ", ".join(left_out_of_benchmarks(measured))
        reason = f"; left out, as it holds only times to be minimised: {left_out}" if left_out else ""
        return f"benchmark JSON: {file}{reason}"

    def summarize(self, reporter: pytest.TerminalReporter) -> None:
        ledger, runs = self._ledger, self._record.runs
        if not runs and not ledger.sections and not ledger.refused:
            return
        from pytest_ldos.show.report.compose import compose
        from pytest_ldos.show.report.terminal import render
        from pytest_ldos.show.report.words import title_of

        writer = reporter._tw  # noqa: SLF001 - pytest's own summaries use it for the width
        begin_section(reporter, title_of(compose(ledger.sections).stacks).removesuffix(":"))
        if ledger.begun_sections:
            shown = render(
                compose(ledger.begun_sections),
                width=writer.fullwidth,
                color=writer.hasmarkup,
                setting=False,
                details=reporter.verbosity > 0,
            )
            write_rendered(reporter, Rendered(shown.lstrip("\n")))
        if ledger.refused:
            write_line(reporter, f"tests refused before anything was measured: {len(ledger.refused)}; see above")
        for nodeid in sorted(ledger.unreported):
            write_line(reporter, f"{nodeid}: pytest reports no failure of it; its first outcome fails this run")
        for line in (*self._lines, *self._describe_runs(is_verbose=reporter.verbosity > 0)):
            write_line(reporter, line)

    def _describe_runs(self, *, is_verbose: bool) -> Iterator[str]:
        from pytest_ldos.measure.trial.rig import describe_durations

        for run in self._record.runs:
            left = [each.path for each in (run.folder, run.folder.base) if each.trials_file.exists()]
            if left and not run.trial_sets:
                where = ", ".join(f"ldos report {each}" for each in left)
                yield f"{run.spec.name}: not finished; what was measured: {where}"
            if run.unjudged:
                yield f"{run.nodeid}: trials were made but never judged; call ldos_gate.check(trials)"
        for run in self._record.runs if is_verbose else ():
            if run.clock.durations:
                took_s = (run.ended_ns - run.began_ns) / 1e9
                yield f"{run.spec.name}: took {took_s:.1f} s: {describe_durations(run.clock.durations, took_s)}"
        settings, folder = self._settings, self._record.folder
        if folder is not None and folder.exists():
            yield f"results: {folder}"
            yield from self._history.summary()
            for dropped in settings.enforce_disk_limit(folder):
                yield f"deleted to stay within {settings.value('traces_limit_mb')} MB: {dropped}"


def _write_report(document: Document, file: Path) -> str:
    from pytest_ldos.show.page.formats import format_of
    from pytest_ldos.show.report.json_text import render_as

    write_atomically(file, render_as(document, format_of(file)))
    return f"report: {file}"


def _append_job_summary(document: Document) -> str:
    if not (file := os.environ.get(_JOB_SUMMARY, "")):
        return f"no job summary: {_JOB_SUMMARY} is not set (this is not a job of a GitHub workflow)"
    from pytest_ldos.show.report import markdown

    with writing(Path(file)), Path(file).open("a", encoding="utf-8") as stream:
        stream.write(markdown.render(document))
    return f"job summary: {file}"
