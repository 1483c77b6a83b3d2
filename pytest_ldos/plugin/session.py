"""Everything a pytest session knows about its measurements."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import ConfigurationError, LdosError
from pytest_ldos.base.text import one_line
from pytest_ldos.plugin.guard import refuse_parallel_runs, refuse_reruns
from pytest_ldos.plugin.instrument_marks import asked_instruments
from pytest_ldos.plugin.machine import Machine
from pytest_ldos.plugin.marks import MEASURING_FIXTURE, STUDY_FIXTURE, describe_marks
from pytest_ldos.plugin.outputs import Outputs
from pytest_ldos.plugin.refusals import Refusals
from pytest_ldos.plugin.scenarios import (
    combinations_in,
    make_scenario_tests,
    require_loads,
    scenario_mark,
    scenario_name,
)
from pytest_ldos.plugin.sweep import Sweeps
from pytest_ldos.plugin.sweep_cells import cell_of, in_cell
from pytest_ldos.plugin.turns import Turns
from pytest_ldos.scenario.settings import Sources

if TYPE_CHECKING:
    from pytest_ldos.base.paths import PathSpec
    from pytest_ldos.campaign.interleave import Interleaved
    from pytest_ldos.campaign.order import Role
    from pytest_ldos.campaign.versions import Version
    from pytest_ldos.judge.gate.decide import GateResult
    from pytest_ldos.judge.gate.family import Family
    from pytest_ldos.judge.gate.policy import Policy
    from pytest_ldos.judge.gate.verdict import Verdict
    from pytest_ldos.measure.metrics.own import OwnMetric
    from pytest_ldos.measure.trial.artifacts import ScenarioFolder
    from pytest_ldos.measure.trial.record import TrialSet
    from pytest_ldos.measure.trial.rig import Rig
    from pytest_ldos.scenario.loads.spec import LoadSpec
    from pytest_ldos.scenario.model import ScenarioSpec, StackSpec
    from pytest_ldos.scenario.watching import WatchSpec
    from pytest_ldos.show.report.document import Place, Section


@dataclass
class ScenarioRun:
    """One scenario test on its way.

    Attributes:
        rig: what runs; ``None`` where versions take turns, each with stacks of its own.
        versions: those that take turns; ``None`` where head is measured alone.
        interleaved: what was measured in turns, in order.
        unjudged: trials that no gate has seen.
        judged: trials and what the gate said of them.
        notes: of what watched its processes, for the next report.
        base_notes: of what the base has other than head, for every report.
        paths: causal paths that are known.
    """

    nodeid: str
    spec: ScenarioSpec
    folder: ScenarioFolder
    rig: Rig | None = None
    versions: Mapping[Role, Version] | None = None
    loads: list[Any] = field(default_factory=list)
    interleaved: list[Interleaved] = field(default_factory=list)
    trial_sets: list[TrialSet] = field(default_factory=list)
    results: list[GateResult] = field(default_factory=list)
    unjudged: list[TrialSet] = field(default_factory=list)
    judged: list[tuple[TrialSet, Verdict]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    base_notes: tuple[str, ...] = ()
    paths: Sequence[PathSpec] = ()

    def take_notes(self) -> list[str]:
        """Each once: what is judged next gets them."""
        taken, self.notes = self.notes, []
        return taken

    def applied(self, load: LoadSpec) -> AbstractContextManager[Any]:
        """A load beside what runs; where versions take turns, one that each of their stacks will get."""
        from pytest_ldos.measure.load.choose import run_load
        from pytest_ldos.measure.load.repeated import RepeatedLoad

        if self.rig is None:
            return nullcontext(RepeatedLoad(load))
        return run_load(load, dataclasses.replace(self.rig.site, paths=self.paths, beside=self._beside()))

    def _beside(self) -> list[LoadSpec]:
        """Loads as they run, or else as the scenario has them."""
        running = [each.spec for each in self.loads]
        kinds = {each.KIND for each in running}
        return [*running, *(each for each in self.spec.loads if each.KIND not in kinds)]

    def beside(self, trials: TrialSet) -> Interleaved | None:
        """The session in which trials took turns with a base; ``None`` for others."""
        return next((each for each in self.interleaved if each.head.session == trials.session), None)


class MeasuringSession:
    """The measurements of one pytest session; does nothing until a test asks for a stack.

    Args:
        failed: tests that failed before there was this session.
    """

    def __init__(self, config: pytest.Config, sources: Sources, *, failed: Collection[str] = ()) -> None:
        self.config = config
        self.sources = sources
        self.runs: list[ScenarioRun] = []
        self._sections: dict[str, list[Section]] = {}
        self._verdicts: list[Verdict] = []
        self._items: list[pytest.Item] = []
        self._studies: list[pytest.Item] = []
        self._is_one_sweep = False
        self._failed = set(failed)
        self._failed_by_verdict: set[str] = set()
        self.made_folder: Path | None = None
        self.machine = Machine(config)
        self.refusals = Refusals()
        self._turns = Turns(config, sources)
        self.outputs = Outputs(self)
        self.sweeps = Sweeps(config, self)
        self.is_kept = True

    @cached_property
    def family(self) -> Family:
        """What was compared so far."""
        from pytest_ldos.judge.gate.family import Family

        return Family()

    # --- what was asked for -----------------------------------------------------------

    def markers(self) -> dict[str, str]:
        """Names and descriptions of the markers that this session knows."""
        described = {name: table.description for name, table in self.sources.toml.scenarios.items()}
        for name, spellings in combinations_in(self.config.getoption("markexpr"), described).items():
            described |= {each: "several at once" for each in (name, *spellings) if each not in described}
        return describe_marks(described)

    def scenario_names(self) -> list[str]:
        return self.sources.scenario_names()

    def make_tests(self, metafunc: pytest.Metafunc) -> None:
        """A test for each cell and each scenario that a test function stands for."""
        self.sweeps.make_cells(metafunc)
        make_scenario_tests(self, metafunc)

    def take_items(self, items: list[pytest.Item]) -> None:
        """Remembers the tests that will measure, and puts cells of sweeps in order."""
        self._items = [item for item in items if MEASURING_FIXTURE in getattr(item, "fixturenames", ())]
        self._studies = [item for item in items if STUDY_FIXTURE in getattr(item, "fixturenames", ())]
        self._is_one_sweep = all(cell_of(item) is not None for item in items)
        if self._items or self._studies:
            self.outputs.require_writable()
        self.sweeps.put_in_order(items)

    def value(self, name: str) -> Any:
        return self.sources.value(name)

    @property
    def is_strict(self) -> bool:
        """Whether a run without a verdict fails: as asked, or by default on CI."""
        asked = self.value("strict")
        return bool(os.environ.get("CI")) if asked is None else bool(asked)

    @property
    def output(self) -> Path:
        return self.config.rootpath / Path(self.value("output"))

    @property
    def policy(self) -> Policy:
        from pytest_ldos.judge.gate.policy import Policy

        own = {metric.name for item in self._items for metric in self.own_metrics(item)}
        judged = len(self._items) + len(self._studies)
        return Policy.configured(self.sources.toml.gate, scenarios=judged, own=own | self._studied())

    def _studied(self) -> set[str]:
        """Names of all that instruments of this session may gate."""
        from pytest_ldos.campaign.instruments import find_instrument

        names = {name for item in self._studies for name in asked_instruments(item)}
        return {each.name for name in names for each in find_instrument(name).quantities}

    def own_metrics(self, item: pytest.Item) -> tuple[OwnMetric, ...]:
        """What the plugins and the conftest.py files of a test register, those of outer folders first.

        Raises:
            ConfigurationError: something else than metrics, or nothing, was given.
        """
        from pytest_ldos.measure.metrics.own import require_own

        hook = item.ihook.pytest_ldos_metrics
        groups = hook()
        given = [each for each in hook.get_hookimpls() if not (each.wrapper or each.hookwrapper)]
        if len(groups) < len(given):  # what gives None is passed over by pytest
            require_own(None)
        return tuple(metric for group in reversed(groups) for metric in require_own(group))

    @property
    def watch_spec(self) -> WatchSpec:
        """What is to watch the measured processes beside the tracer."""
        from pytest_ldos.scenario.watching import WatchSpec

        return WatchSpec(
            profile=self.value("profile"),
            profiler=self.value("profiler"),
            rate_hz=self.value("profile_rate"),
            syscalls=self.value("syscalls"),
        )

    # --- what runs --------------------------------------------------------------------

    @contextmanager
    def open_scenario(
        self, item: pytest.Item, stack: StackSpec, *, announce: Callable[[str], None]
    ) -> Iterator[ScenarioRun]:
        """Starts a recorded stack for a test and ends it with the test.

        With ``--ldos-base`` none is started yet: each version gets stacks of its own when trials are made.

        Args:
            announce: told what is being waited for.
        """
        from pytest_ldos.measure.metrics.catalogue import catalogue_of

        with self.refusals.noted(item.nodeid):
            refuse_reruns(self.config, item)
            refuse_parallel_runs(self.config, is_one_sweep=self._is_one_sweep)
            catalogue_of(self.own_metrics(item))  # what is wrong with them is said before anything is measured
            _ = self.policy  # likewise
        spec = in_cell(item, dataclasses.replace(self.spec_of(item), stack=stack))
        require_loads(spec.loads, spec)
        with ExitStack() as resources:
            with self.refusals.noted(item.nodeid):
                resources.enter_context(self.machine.held(announce))
            yield resources.enter_context(self._open(item, spec, announce=announce))

    @contextmanager
    def holding_machine(self, item: pytest.Item, announce: Callable[[str], None]) -> Iterator[None]:
        """The machine for a test that measures without a stack."""
        refuse_reruns(self.config, item)
        refuse_parallel_runs(self.config, is_one_sweep=False)
        _ = self.policy  # what is wrong with it is said before anything is measured
        with self.machine.held(announce):
            yield

    @contextmanager
    def _open(self, item: pytest.Item, spec: ScenarioSpec, *, announce: Callable[[str], None]) -> Iterator[ScenarioRun]:
        """Starts what a scenario asks for, with the machine held."""
        from pytest_ldos.measure.trial.artifacts import new_scenario_folder
        from pytest_ldos.measure.trial.rig import open_rig

        folder = new_scenario_folder(self.run_folder(), spec.name)
        run = ScenarioRun(item.nodeid, spec, folder, paths=self.sources.toml.paths)
        self.runs.append(run)
        try:
            if self._turns.asked:
                run.versions = self._turns.versions(spec.stack, store=self.output, announce=announce)
                run.base_notes = self._notes_on_settings(item, run.versions)
                yield run
                return
            announce("starting the stack")
            with open_rig(spec.stack, run.folder, on_waiting=lambda what: announce(f"waiting: {what}")) as rig:
                run.rig = rig
                yield run
        finally:
            self._tidy(run)

    def _notes_on_settings(self, item: pytest.Item, versions: Mapping[Role, Version]) -> tuple[str, ...]:
        from pytest_ldos.campaign.order import Role

        return self._turns.describe_settings(versions[Role.BASE], lambda sources: self.spec_of(item, sources))

    def spec_of(self, item: pytest.Item, sources: Sources | None = None) -> ScenarioSpec:
        """The scenario of a test, by its marker.

        Args:
            sources: of its settings, instead of the session's.

        Raises:
            ConfigurationError: it has none, or one with unknown arguments.
        """
        marker = scenario_mark(item, self.scenario_names())
        if marker is not None:
            return (sources or self.sources).scenario(scenario_name(marker), marker.kwargs)
        raise ConfigurationError(
            f"{item.nodeid} measures a stack but has no scenario",
            remedy=f"mark it with one of: {', '.join(self.scenario_names())}",
        )

    def run_folder(self) -> Path:
        """The folder of this run, for all its tests; made when the first asks for it.

        Raises:
            OSError: it cannot be made.
        """
        from pytest_ldos.measure.trial.artifacts import new_run_folder

        if self.made_folder is None:
            self.made_folder = new_run_folder(self.output)
        return self.made_folder

    def _tidy(self, run: ScenarioRun) -> None:
        """Keeps or drops the trace, by the rule that was asked for."""
        from pytest_ldos.judge.gate.verdict import Verdict
        from pytest_ldos.measure.trial.artifacts import drop_traces, is_worth_keeping

        regressed = any(result.verdict is Verdict.REGRESSED for result in run.results)
        policy = self.value("traces")
        measured = [*run.trial_sets, *(each.base for each in run.interleaved)]
        if not any(is_worth_keeping(each, regressed=regressed, policy=policy) for each in measured):
            drop_traces(run.folder)

    # --- what came of it --------------------------------------------------------------

    def note_section(self, nodeid: str, section: Section, verdict: Verdict) -> None:
        """Takes a judged scenario into the report; its test fails if the verdict says so."""
        from pytest_ldos.judge.gate.verdict import is_failure

        self._sections.setdefault(nodeid, []).append(dataclasses.replace(section, test=self._place_of(nodeid)))
        self._verdicts.append(verdict)
        if is_failure(verdict, strict=self.is_strict):
            self._failed_by_verdict.add(nodeid)

    def _place_of(self, nodeid: str) -> Place | None:
        """Where a test is written, as pytest knows it."""
        from pytest_ldos.show.report.document import Place

        item = next((item for item in self._items if item.nodeid == nodeid), None)
        if item is None or item.location[1] is None:
            return None
        return Place(file=Path(item.location[0]).as_posix(), line=item.location[1] + 1)

    def note_verdict(self, nodeid: str, verdict: str) -> None:
        """A verdict that was reached elsewhere, or before."""
        from pytest_ldos.judge.gate.verdict import Verdict, is_failure

        self._verdicts.append(Verdict(verdict))
        if is_failure(Verdict(verdict), strict=self.is_strict):
            self._failed_by_verdict.add(nodeid)

    def verdicts_of(self, nodeid: str) -> list[Verdict]:
        """Of all that was judged in a test so far."""
        return [section.verdict for section in self._sections.get(nodeid, ()) if section.verdict is not None]

    @property
    def sections(self) -> list[Section]:
        """Of all tests."""
        return [section for of_test in self._sections.values() for section in of_test]

    @property
    def begun_sections(self) -> list[Section]:
        """Of all tests that were not refused."""
        of_tests = (found for nodeid, found in self._sections.items() if nodeid not in self.refusals)
        return [section for of_test in of_tests for section in of_test]

    def describe(self, item: pytest.Item) -> None:
        """Gives a test the properties of all that was judged in it so far, each once."""
        sections = self._sections.get(item.nodeid)
        if not sections:
            return
        from pytest_ldos.show.report import junit
        from pytest_ldos.show.report.compose import compose

        properties = junit.render(compose(sections))
        others = [each for each in item.user_properties if each[0] not in properties]
        item.user_properties[:] = [*others, *properties.items()]

    def note_infra(self, nodeid: str, scenario: str, error: LdosError) -> None:
        """A scenario that could not be measured at all."""
        from pytest_ldos.judge.gate.verdict import Verdict
        from pytest_ldos.show.report.compose import compose_infra

        reasons = error.summary.splitlines()  # the details are in the test's own message
        self.note_section(nodeid, compose_infra(scenario, reasons), Verdict.INFRA)

    def take_report(self, report: pytest.TestReport) -> None:
        """Remembers which tests failed, for whatever reason."""
        if report.failed:
            self._failed.add(report.nodeid)

    def has_failed(self, nodeid: str) -> bool:
        """Whether a test failed so far, or one below it."""
        return any(failed == nodeid or failed.startswith(f"{nodeid}::") for failed in self._failed)

    def header(self) -> list[str]:
        """What will be measured with what; nothing where no test measures."""
        return [one_line(line) for line in self._header()] if self._items else []

    def _header(self) -> list[str]:
        from pytest_ldos.host.fingerprint import take_fingerprint
        from pytest_ldos.record.choose import recorder_name, recording_available
        from pytest_ldos.robot.stack.choose import describe_stack, stack_available, why_not_ros2

        spec = self.sources.stack_spec()
        absent = [each for each in (stack_available(spec), recording_available()) if not each.ok]
        if absent:
            return [f"ldos: cannot measure: {each.reason} → {each.remedy}" for each in absent]
        info = describe_stack(spec)
        host = take_fingerprint(rmw=info.rmw, versions=info.versions)
        notes = [f"ldos: {reason}"] if (reason := why_not_ros2(spec)) else []
        return [
            *notes,
            f"ldos: stack {info.description}",
            *([f"ldos: in turns with base {self._turns.asked}"] if self._turns.asked else []),
            f"ldos: tracer {recorder_name()}; host class {host.host_class}",
        ]

    def finish(self, exit_status: int) -> int:
        """Writes what was asked for and turns verdicts into the exit status.

        pytest's own codes keep their meaning: where a test failed for another reason than
        a verdict, the run ends with 1. What could not be written makes a green run invalid.
        """
        self.outputs.write()
        if not self.is_kept:
            return exit_codes.INVALID
        is_ours = bool(self._failed) and self._failed <= self._failed_by_verdict
        if exit_status == pytest.ExitCode.OK and not self.outputs.is_whole:
            return exit_codes.INVALID
        if exit_status != pytest.ExitCode.TESTS_FAILED or not is_ours:
            return exit_status
        from pytest_ldos.judge.gate.verdict import exit_code, worst

        return exit_code(worst(self._verdicts), strict=self.is_strict)

    def summarize(self, reporter: pytest.TerminalReporter) -> None:
        self.sweeps.summarize(reporter)
        self.outputs.summarize(reporter)

    def close(self) -> None:
        self.machine.close()
