"""Results of a session's sweeps: encoded by workers, written by the session's main process."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_ldos.base.errors import LdosError
from pytest_ldos.base.files import write_atomically
from pytest_ldos.campaign.cells import Grid, unlike
from pytest_ldos.campaign.starts import version_here
from pytest_ldos.campaign.sweep import (
    CellState,
    Definition,
    StartRecord,
    SweepFolder,
    SweepKey,
    all_sweeps,
    collect,
    decode_start,
    encode_start,
    find_sweep,
    new_sweep,
    state_of,
)
from pytest_ldos.campaign.versions.version import find_revision
from pytest_ldos.judge.gate.verdict import Verdict, worst
from pytest_ldos.plugin.messages import begin_section, write_line, write_rendered
from pytest_ldos.plugin.options import DONE_INPUT, describe_skip
from pytest_ldos.plugin.runs import SessionParts
from pytest_ldos.plugin.settings import SweepCell, in_cell, sweep_name
from pytest_ldos.show.page.formats import HTML_PACKAGES
from pytest_ldos.show.report import sweep as sweep_report
from pytest_ldos.show.report.reasons import describe_reason

_LONGEST_MESSAGE: Final = 20_000
_TRIED_AGAIN: Final = frozenset({CellState.SKIPPED, CellState.INFRA})


@dataclass(frozen=True)
class Outcome:
    """The end of a cell's test in an earlier session; it has a message if it failed."""

    verdict: str
    message: str
    summary: str

    @classmethod
    def of(cls, record: StartRecord) -> Outcome:
        measured = "it succeeded" if record.state is CellState.MEASURED else f"{record.state}: {record.reason}"
        return cls(record.verdict, record.message, record.verdict or measured)


class SweepResults:
    def __init__(self, parts: SessionParts) -> None:
        self._settings, self._record, self._ledger = parts
        self._folders: dict[tuple[str, str], SweepFolder] = {}
        self._definitions: dict[str, Definition] = {}
        self._damaged: list[Path] = []

    @cached_property
    def _version(self) -> Mapping[str, str]:
        settings, root = self._settings, self._settings.root
        head = find_revision(settings.value("head"), root) if settings.value("head") else None
        watch = settings.watch_spec
        return {
            **version_here(root, settings.sources.stack_spec(), baselines=root / settings.value("baselines")),
            **({"head": head.commit} if head else {}),
            **({"watched": repr(watch)} if watch.is_asked else {}),
        }

    def encode(self, item: pytest.Item, cell: SweepCell, reports: Sequence[pytest.TestReport]) -> str:
        runs = self._record.runs_of(item.nodeid)
        sets = [trials for run in runs for trials in run.trial_sets]
        verdicts = self._ledger.verdicts_of(item.nodeid)
        message = next((report.longreprtext for report in reports if report.failed), "")
        skipped = next((report for report in reports if report.skipped), None)
        if sets:
            state, reason = state_of(sets[-1], describe_reason)
            if others := unlike(sets[-1].spec, cell.assignments):
                measured = f"the test measured with another {', '.join(others)} than its cell has"
                state, reason = CellState.INVALID, f"{measured}: let it use ldos_loads()"
        elif skipped is not None:
            state, reason = CellState.SKIPPED, describe_skip(skipped).removeprefix("skipped: ")
        elif Verdict.INFRA in verdicts:
            state, reason = CellState.INFRA, message
        else:
            state, reason = CellState.INVALID, message or "the test made no trials"
        record = StartRecord(
            cell=in_cell(item, self._settings.scenario_of(item)).name,
            start=0,
            state=state,
            reason=reason,
            trials=sets[-1] if sets else None,
            began_ns=runs[-1].began_ns if runs else 0,
            ended_ns=runs[-1].ended_ns if runs else 0,
            host=platform.node(),
            verdict=worst(verdicts).value if verdicts else "",
            message=message[:_LONGEST_MESSAGE],
        )
        return self.identify(item, cell, start=encode_start(record))

    def identify(self, item: pytest.Item, cell: SweepCell, **more: Any) -> str:
        """Encodes a cell's sweep, and more about the cell, as JSON."""
        definition = self._definition_of(item, cell)
        found = {"name": definition.name, "digest": definition.key.digest, "definition": definition.to_plain()}
        return json.dumps({**found, **more})

    def _definition_of(self, item: pytest.Item, cell: SweepCell) -> Definition:
        name = sweep_name(item, cell)
        if name not in self._definitions:
            grid = Grid(base=self._settings.scenario_of(item), axes=cell.axes)
            self._definitions[name] = Definition(name=name, grid=grid, root=str(self._settings.root))
        return self._definitions[name]

    @cached_property
    def done(self) -> dict[str, dict[str, Any]]:
        """Completed cells of the newest sweep of each name in this version, by sweep and cell; read once.

        Cells that could not be measured or read are tried again. A worker has them from the main process.
        """
        if self._settings.is_worker:
            return dict(json.loads(self._settings.config.workerinput.get(DONE_INPUT, "{}")))  # type: ignore[attr-defined]
        found: dict[str, dict[str, Any]] = {}
        for folder in all_sweeps(self._settings.output):
            key = folder.key()
            if key is not None and key.version == self._version and _title(key) not in found:
                records = folder.records(skip_damaged=True).items()
                measured = {cell: each for (cell, _), each in records if each.state not in _TRIED_AGAIN}
                found[_title(key)] = {cell: asdict(Outcome.of(each)) for cell, each in measured.items()}
        return found

    def outcome(self, item: pytest.Item, cell: SweepCell) -> Outcome | None:
        """The earlier outcome of a cell; ``None`` if it must be measured."""
        known = self.done.get(_title(self._definition_of(item, cell).key), {})
        found = known.get(in_cell(item, self._settings.scenario_of(item)).name)
        return None if found is None else Outcome(**found)

    def keep(self, nodeid: str, result: str) -> str:
        """Writes the result of a cell, if it is new, and returns a line on it; shows its sweep at the end."""
        document = json.loads(result)
        folder = self._folder(document["name"], document["digest"], document["definition"])
        if "start" not in document:
            self._ledger.is_answered = True
            return ""
        record = decode_start(document["start"], Path(nodeid))
        folder.keep(record)
        if record.trials is not None:
            self._ledger.is_answered = True
        if record.verdict and record.message:
            self._ledger.enter_verdict(nodeid, Verdict(record.verdict))
        outline = folder.outline()
        cell = next(each for each in outline.cells if each.name == record.cell)
        report = sweep_report.compose_sweep("", outline, collect([cell], {(record.cell, 0): record}, 1))
        line = sweep_report.describe_cell(report.cells[0], sweep_report.shown_metrics(report))
        return f"[{len(folder.starts.files())}/{len(outline.cells)}] {line}"

    def _folder(self, name: str, digest: str, definition: Mapping[str, Any]) -> SweepFolder:
        """The folder of a sweep in this session: an earlier one if it is resumed, or a new one."""
        if (name, digest) not in self._folders:
            key = SweepKey(name, digest, self._version)
            earlier = find_sweep(self._settings.output, key) if self._settings.value("resume") else None
            self._damaged += earlier.starts.set_damaged_aside() if earlier is not None else []
            self._folders[name, digest] = earlier or new_sweep(self._settings.output, key, definition)
        return self._folders[name, digest]

    def summarize(self, reporter: pytest.TerminalReporter) -> None:
        for damaged in self._damaged:
            write_line(reporter, f"damaged, set aside: {damaged}", yellow=True)
        writer = reporter._tw  # noqa: SLF001 - pytest's own summaries use it for the width
        for (name, _), folder in self._folders.items():
            begin_section(reporter, f"ldos sweep {name}")
            try:
                outline = folder.outline()
                report = sweep_report.compose_sweep(name, outline, collect(outline.cells, folder.records(), 1))
                shown = sweep_report.render_text(report, width=writer.fullwidth, color=writer.hasmarkup)
                write_rendered(reporter, shown)
                write_line(reporter, self._write(report, folder))
            except (LdosError, OSError) as error:
                write_line(reporter, f"no report of the sweep: {error}")

    def _write(self, report: sweep_report.SweepReport, folder: SweepFolder) -> str:
        has_page = all(map(find_spec, HTML_PACKAGES))
        files = [folder.path / "report.json", *([folder.path / "report.html"] if has_page else [])]
        for file in files:
            write_atomically(file, sweep_report.render_for(report, file))
        return f"results: {self._settings.short(folder.path)} ({', '.join(file.name for file in files)})"


def _title(key: SweepKey) -> str:
    return f"{key.name} {key.digest}"
