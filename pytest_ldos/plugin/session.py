"""The measurements of one pytest session: its settings, a record of its runs, and a ledger of its verdicts."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Final

import pytest

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.text import one_line
from pytest_ldos.plugin.ledger import GREEN, Ledger
from pytest_ldos.plugin.machine import Machine, is_worker
from pytest_ldos.plugin.marks import UNJUDGED_OUTPUT
from pytest_ldos.plugin.messages import begin_section, write_line
from pytest_ldos.plugin.outputs import Outputs
from pytest_ldos.plugin.preflight import describe_refusals, refuse_child_process, require_place, require_ready
from pytest_ldos.plugin.run_record import RunRecord, SessionParts
from pytest_ldos.plugin.scenarios import in_cell, make_scenario_tests, require_loads
from pytest_ldos.plugin.selection import Selection, metrics_of, refuse_parallel_runs
from pytest_ldos.plugin.settings import Settings
from pytest_ldos.plugin.sweep import Sweeps
from pytest_ldos.scenario.options import LEFT_OUT
from pytest_ldos.scenario.settings import Sources

if TYPE_CHECKING:
    from pytest_ldos.campaign.cost import Cost
    from pytest_ldos.campaign.estimate import Expected
    from pytest_ldos.plugin.scenario_run import ScenarioRun
    from pytest_ldos.scenario.model import ScenarioSpec, StackSpec


def estimate_lines(settings: Settings, scenarios: Sequence[pytest.Item], *, stack: str, prefix: str = "") -> list[str]:
    """One line on the expected duration of trials, without builds; none if there are no trials.

    Args:
        stack: name of the stack under test, or its beginning.
        prefix: text before the estimate.
    """
    from pytest_ldos.campaign.estimate import describe_expected, duration_files, measured_cost

    files = duration_files(settings.output)
    expected = [
        _expected(settings, spec, measured_cost(files, stack=stack, scenario=spec.name))
        for spec in _specs(settings, scenarios)
    ]
    return [f"ldos: {prefix}{describe_expected(expected)}"] if expected else []


def _specs(settings: Settings, scenarios: Sequence[pytest.Item]) -> Iterator[ScenarioSpec]:
    """Scenarios of tests; a test without a valid one reports that when it runs."""
    for item in scenarios:
        with suppress(ConfigurationError):
            yield in_cell(item, settings.scenario_of(item))


def _expected(settings: Settings, spec: ScenarioSpec, cost: Cost | None) -> Expected:
    from pytest_ldos.campaign.estimate import Expected, amount_alone, amount_interleaved

    counts = (spec.trials, max(spec.trials, spec.max_trials))
    amount = amount_interleaved if settings.value("base") else amount_alone
    least, most = (amount(spec, trials, size=settings.value("block")) for trials in counts)
    return Expected(least, most, cost)


_LISTINGS: Final = ("collectonly", "showfixtures", "show_fixtures_per_test")
"""Options of pytest that only list tests."""

_NOT_RUN: Final = "not run"
_DESELECTED: Final = "deselected by a plugin or a conftest.py"


class MeasuringSession:
    """Connects the parts of one session; does nothing until a test requests a measurement.

    Args:
        pid: of the process that pytest runs in.
        failed: tests that failed before this session was created.
    """

    def __init__(self, config: pytest.Config, sources: Sources, *, pid: int, failed: Collection[str] = ()) -> None:
        self._config = config
        self._unjudged: dict[str, str] = {}
        self._lacks_verdict = False
        self._pid = pid
        self.settings = Settings(config, sources)
        self.selection = Selection()
        self.record = RunRecord(self.settings)
        self.ledger = Ledger(self.settings, self.selection, failed=failed)
        self.machine = Machine(config)
        parts = SessionParts(self.settings, self.record, self.ledger)
        self.sweeps = Sweeps(parts)
        self.outputs = Outputs(parts)

    def make_tests(self, metafunc: pytest.Metafunc) -> None:
        """Makes a test for each cell and each scenario of a test function."""
        self.sweeps.make_cells(metafunc)
        make_scenario_tests(metafunc, self.settings.scenario_names())

    def take_items(self, items: list[pytest.Item], asked: Sequence[pytest.Item]) -> None:
        """Records the measuring tests, and puts cells of sweeps in order; see `Selection.take`."""
        self.selection.take(items, asked)
        if self.selection:
            self.outputs.require_writable()
        self.sweeps.put_in_order(items)

    def header(self) -> list[str]:
        """Settings, stack, base, tracer and host of the measurements; nothing if no test measures."""
        scenarios = self.selection.scenarios
        of_stack = _describe_setup(self.settings, scenarios) if scenarios else []
        return [one_line(line) for line in (self.settings.describe_file(), *of_stack)] if self.selection else []

    def once(self, item: pytest.Item, when: str) -> AbstractContextManager[None]:
        """Allows a phase of a measuring test to begin only once; see `Ledger.once`."""
        return self.ledger.once(item, when, is_measured=bool(self.record.runs_of(item.nodeid)))

    @contextmanager
    def open_scenario(
        self, item: pytest.Item, stack: StackSpec, *, announce: Callable[[str], None]
    ) -> Iterator[ScenarioRun]:
        """Starts a recorded stack for a test and ends it with the test; see `RunRecord.open_run`."""
        self._require_first(item)
        refused = self.ledger.refusals.noted
        with refused(item.nodeid):
            refuse_child_process(self._pid)
            refuse_parallel_runs(item.config, is_one_sweep=self.selection.is_one_sweep)
            metrics_of(item, self.settings)  # reports errors of metrics and policy before measuring
            _ = self.ledger.policy
        spec = in_cell(item, dataclasses.replace(self.settings.scenario_of(item), stack=stack))
        is_to_be_built = _is_to_be_built(self.settings, stack)
        with refused(item.nodeid):
            require_ready(spec, self.settings, is_to_be_built=is_to_be_built, announce=announce)
        if not is_to_be_built:
            require_loads(spec.loads, spec)
        with ExitStack() as resources:
            with refused(item.nodeid):
                resources.enter_context(self._held(item, announce))
                require_place(spec, self.settings, is_to_be_built=is_to_be_built)
            yield resources.enter_context(self.record.open_run(item, spec, announce=announce))

    @contextmanager
    def holding_machine(self, item: pytest.Item, announce: Callable[[str], None]) -> Iterator[None]:
        """Holds the machine for a test that measures without a stack."""
        self._require_first(item)
        refuse_child_process(self._pid)
        refuse_parallel_runs(item.config, is_one_sweep=False)
        _ = self.ledger.policy  # reports its errors before measuring
        with self._held(item, announce):
            yield

    def _require_first(self, item: pytest.Item) -> None:
        """Refuses to measure a test again."""
        if self.record.runs_of(item.nodeid) or self.ledger.verdicts_of(item.nodeid):
            self.ledger.refuse_start(item.nodeid)

    def _held(self, item: pytest.Item, announce: Callable[[str], None]) -> AbstractContextManager[None]:
        return self.machine.held(announce, what=item.nodeid, wait_s=self.settings.wait_s)

    def finish(self, exit_status: int, items: Sequence[pytest.Item]) -> int:
        """Writes the outputs and turns verdicts into the exit status.

        pytest's own codes keep their meaning: if a test failed for another reason than a verdict, the run ends with 1.
        An output that could not be written makes a green run invalid, and a green strict run without any verdict is
        inconclusive.

        Args:
            items: tests that were selected to run.
        """
        self.outputs.write()
        if not self.sweeps.is_kept or (exit_status == pytest.ExitCode.OK and not self.outputs.is_whole):
            return exit_codes.INVALID
        status = self.ledger.exit_status(exit_status)
        if status not in GREEN or any(map(self._config.getoption, _LISTINGS)):
            return status
        self.enter_unjudged(self._find_unjudged({item.nodeid for item in items}))
        if is_worker(self._config):
            self._config.workeroutput[UNJUDGED_OUTPUT] = self._unjudged  # type: ignore[attr-defined]
            return status
        self._lacks_verdict = bool(self._unjudged) and self.settings.is_strict and not self.ledger.is_answered
        return exit_codes.INCONCLUSIVE if self._lacks_verdict else status

    def enter_unjudged(self, reasons: Mapping[str, str]) -> None:
        """Records tests without an expected verdict, with reasons; tests that ran keep their own reasons."""
        self._unjudged |= {name: why for name, why in reasons.items() if why != _NOT_RUN or name not in self._unjudged}

    def _find_unjudged(self, left: Collection[str]) -> dict[str, str]:
        option = self._config.getoption
        is_narrowed = option("lf", default=False) or option("stepwise", default=False)
        asked = (name for name in self.selection.asked if name in left or not is_narrowed)
        measured = (run.nodeid for run in self.record.runs)
        return {name: self._why_unjudged(name, left) for name in dict.fromkeys([*asked, *measured])}

    def _why_unjudged(self, nodeid: str, left: Collection[str]) -> str:
        if any(run.unjudged for run in self.record.runs_of(nodeid)):
            return "trials were made but never judged; call ldos_gate.check(trials)"
        return self.ledger.end_of(nodeid) or (_NOT_RUN if nodeid in left else _DESELECTED)

    def summarize(self, reporter: pytest.TerminalReporter) -> None:
        """Prints the results of sweeps and scenarios, or why there are none if a verdict is required."""
        self.sweeps.summarize(reporter)
        self.outputs.summarize(reporter)
        if self._lacks_verdict:
            begin_section(reporter, "ldos: no verdict")
            for line in _describe_unjudged(self._unjudged):
                write_line(reporter, line)

    def close(self) -> None:
        """Releases the machine."""
        self.machine.close()


def _describe_unjudged(unjudged: Mapping[str, str]) -> Iterator[str]:
    """Lines on a strict session in which no test was judged."""
    yield (
        "no test was judged, and this run requires a verdict (--ldos-strict, the default where CI is set): "
        f"exit status {exit_codes.INCONCLUSIVE}"
    )
    tests: dict[str, list[str]] = {}
    for nodeid, why in unjudged.items():
        tests.setdefault(why, []).append(nodeid)
    for why, (first, *others) in tests.items():
        yield f"  {first}{f' and {len(others)} more' if others else ''}: {why}"
    yield "  → where none is to be judged, leave them out by -m, -k, --deselect or --ignore, or set LDOS_STRICT=no"


def _describe_setup(settings: Settings, scenarios: Sequence[pytest.Item]) -> list[str]:
    from pytest_ldos.host.fingerprint import take_fingerprint
    from pytest_ldos.record.choose import recorder_name, recording_available
    from pytest_ldos.robot.stack.choose import describe_stack, stack_available, why_not_ros2
    from pytest_ldos.scenario.words import StackKind

    spec = settings.sources.stack_spec()
    is_to_be_built = _is_to_be_built(settings, spec)
    is_dry = settings.config.option.collectonly
    refusals = [] if is_dry else describe_refusals(scenarios, settings, spec, is_to_be_built=is_to_be_built)
    if is_to_be_built:
        return [
            *refusals,
            "ldos: stack ros2, whose workspace is built before it is measured",
            *_describe_versions(settings),
            *estimate_lines(settings, scenarios, stack=StackKind.ROS2, prefix="in addition to the builds, "),
        ]
    absent = [each for each in (stack_available(spec), recording_available()) if not each.ok]
    if absent:
        return [f"ldos: cannot measure: {each.reason} → {each.remedy}" for each in absent]
    info = describe_stack(spec)
    host = take_fingerprint(rmw=info.rmw, versions=info.versions)
    notes = [f"ldos: {reason}"] if (reason := why_not_ros2(spec)) else []
    notes += [f"ldos: left out of ros_ws: {reasons}"] if (reasons := os.environ.get(LEFT_OUT)) else []
    return [
        *refusals,
        *notes,
        f"ldos: stack {info.description}",
        *_describe_versions(settings),
        f"ldos: tracer {recorder_name()}; host class {host.host_class}",
        *estimate_lines(settings, scenarios, stack=info.name),
    ]


def _describe_versions(settings: Settings) -> list[str]:
    head, base = settings.value("head"), settings.value("base")
    of_head = f"ldos: stack of head {head}; tests and settings of this checkout"
    return [*([of_head] if head else []), *([f"ldos: interleaved with base {base}"] if base else [])]


def _is_to_be_built(settings: Settings, stack: StackSpec) -> bool:
    """True if head's ROS 2 workspace is built before it is measured, as asked for or as that of a revision."""
    from pytest_ldos.scenario.words import StackKind

    base = settings.value("base")
    is_revision = settings.value("head") or (base and not (settings.folder / base).is_dir())
    if settings.value("build"):
        return stack.kind is not StackKind.EMBEDDED
    return bool(is_revision) and stack.kind is StackKind.ROS2
