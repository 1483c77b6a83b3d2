"""The measurements of one pytest session, and the checks before each starts."""

from __future__ import annotations

import dataclasses
import math
import os
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Final

import pytest

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import ConfigurationError, LdosError, RecordUnreadable
from pytest_ldos.base.files import require_writable_file
from pytest_ldos.base.text import one_line
from pytest_ldos.plugin.ledger import GREEN, Ledger, Selection, metrics_of, refuse_parallel_runs
from pytest_ldos.plugin.messages import begin_section, write_line
from pytest_ldos.plugin.options import UNJUDGED_OUTPUT
from pytest_ldos.plugin.outputs import Outputs
from pytest_ldos.plugin.runs import RunRecord, SessionParts
from pytest_ldos.plugin.settings import Settings, cell_of, in_cell, make_scenario_tests, require_loads
from pytest_ldos.plugin.sweep import Sweeps
from pytest_ldos.scenario.model import ScenarioSpec, StackSpec
from pytest_ldos.scenario.options import LEFT_OUT
from pytest_ldos.scenario.settings import Sources
from pytest_ldos.scenario.words import StackKind

if TYPE_CHECKING:
    from pytest_ldos.host.temporary import Termination
    from pytest_ldos.judge.baseline.key import BaselineKey
    from pytest_ldos.plugin.runs import ScenarioRun


class Machine:
    """The machine's lock; if it `is_shared` by workers of pytest-xdist, each holds it for one test."""

    def __init__(self, *, is_shared: bool) -> None:
        self._is_shared = is_shared
        self._resources = ExitStack()
        self._tell: Callable[[str], None] = lambda _: None
        self._termination: Termination | None = None

    @contextmanager
    def held(self, announce: Callable[[str], None], *, what: str, wait_s: float) -> Iterator[None]:
        """Holds the machine; others see what is measured. Waits up to `wait_s`."""
        _require_sockets()
        from pytest_ldos.host.lock import measuring_lock
        from pytest_ldos.host.temporary import terminated_like_interrupted

        def taken(wait_s: float) -> AbstractContextManager[Callable[[str], None]]:
            return measuring_lock(wait_s=wait_s, on_waiting=lambda holder: announce(f"waiting for {holder}"))

        with ExitStack() as resources:
            if self._is_shared:
                self._tell = resources.enter_context(taken(math.inf))
            elif self._termination is None:
                self._tell = self._resources.enter_context(taken(wait_s))
                self._termination = self._resources.enter_context(terminated_like_interrupted())
            self._tell(what)
            yield

    def settle(self) -> None:
        """Stops handling SIGTERM after all tests, when nothing is left to interrupt."""
        if self._termination is not None:
            self._termination.settle()

    def close(self) -> None:
        self._resources.close()


def _require_sockets() -> None:
    """Refuses a test that may not open sockets, which hold the machine's lock and the stack's DDS domain."""
    import socket

    try:
        with warnings.catch_warnings(action="ignore"):
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect("\0ldos-answers-nothing")
    except OSError:
        return
    except Exception as error:  # noqa: BLE001 - a plugin may raise any exception in place of the kernel's errors
        plugin = type(error).__module__
        raise ConfigurationError(
            f"a plugin blocks the sockets by which a measurement holds machine and DDS domain: {plugin}: {error}",
            remedy="mark the test with @pytest.mark.enable_socket, or give --force-enable-socket"
            if plugin == "pytest_socket"
            else "let this test open sockets; those of the stack stay on this machine",
        ) from None


IN_A_CHILD: Final = "scenario tests cannot run in a child process of pytest: verdict, baseline and report would be lost"
NO_CHILD: Final = "leave out what starts one for each test, such as --forked or the mark forked of pytest-forked"


def require_ready(
    spec: ScenarioSpec, settings: Settings, *, is_to_be_built: bool, announce: Callable[[str], None]
) -> None:
    """Refuses a scenario whose goals, baseline or calibration cannot be used; announces unavailable profilers.

    A stack that `is_to_be_built` is known only afterwards: only its goals are checked.
    """
    from pytest_ldos.judge.baseline.store import UnreadableCalibration, find_calibration_of
    from pytest_ldos.measure.trial.artifacts import read_trials
    from pytest_ldos.robot.stack.choose import require_goals

    require_goals(spec.stack, spec.goals)
    key = None if is_to_be_built else _key_of(spec)
    if key is not None:
        uses_stored = not settings.value("update_baseline") and not settings.value("base")
        stored = settings.stores.find(key) if uses_stored else None
        if stored is not None:
            try:
                read_trials(stored.file)
            except RecordUnreadable as error:
                raise RecordUnreadable(f"the baseline cannot be read: {error.message}", remedy=error.remedy) from None
        known = find_calibration_of(settings.stores, key)
        if isinstance(known, UnreadableCalibration):
            raise RecordUnreadable(f"the calibration cannot be read: {known.reason}")
    if settings.watch_spec.is_asked:
        from pytest_ldos.campaign.watching import Watching

        for note in Watching(settings.watch_spec).notes:
            announce(note)


def require_place(spec: ScenarioSpec, settings: Settings, *, is_to_be_built: bool) -> None:
    """Refuses a run that would become a baseline, by request or as the first, if it cannot be written."""
    key = None if is_to_be_built else _key_of(spec)
    if key is None:
        return
    stored = settings.stores.find(key)
    is_first = stored is None and not settings.is_strict and not settings.value("base")
    if settings.value("update_baseline") or is_first:
        require_writable_file(key.file(settings.stores.local) if stored is None else stored.file)


def _key_of(spec: ScenarioSpec) -> BaselineKey | None:
    from pytest_ldos.campaign.starts import key_of
    from pytest_ldos.robot.stack.choose import stack_available

    return key_of(spec) if stack_available(spec.stack).ok else None


def estimate_lines(settings: Settings, scenarios: Sequence[pytest.Item], *, stack: str, prefix: str = "") -> list[str]:
    """One line on the expected duration of trials, without builds; none if there are no trials."""
    from pytest_ldos.campaign import estimate
    from pytest_ldos.robot.stack.problems import count_problems

    files = estimate.duration_files(settings.output)
    amount = estimate.amount_interleaved if settings.value("base") else estimate.amount_alone
    expected = []
    for item in scenarios:
        with suppress(ConfigurationError):  # which the test reports when it runs
            spec = in_cell(item, settings.scenario_of(item))
            cost = estimate.measured_cost(files, stack=stack, scenario=spec.name)
            sizes = {"size": settings.value("block"), "problems": count_problems(spec, spec.goals)}
            least, most = (amount(spec, each, **sizes) for each in (spec.trials, max(spec.trials, spec.max_trials)))
            expected.append(estimate.Expected(least, most, cost))
    return [f"ldos: {prefix}{estimate.describe_expected(expected)}"] if expected else []


_NOT_RUN: Final = "not run"


class MeasuringSession:
    """Connects the parts of one session, in the process `pid`; does nothing until a test requests a measurement."""

    def __init__(self, config: pytest.Config, sources: Sources, *, pid: int, failed: Collection[str] = ()) -> None:
        self._config = config
        self._unjudged: dict[str, str] = {}
        self._lacks_verdict = False
        self._pid = pid
        self.settings = Settings(config, sources)
        self.selection = Selection()
        self.record = RunRecord(self.settings)
        self.ledger = Ledger(self.settings, self.selection, failed=failed)
        self.machine = Machine(is_shared=self.settings.is_worker)
        parts = SessionParts(self.settings, self.record, self.ledger)
        self.sweeps = Sweeps(parts)
        self.outputs = Outputs(parts)

    def make_tests(self, metafunc: pytest.Metafunc) -> None:
        self.sweeps.make_cells(metafunc)
        make_scenario_tests(metafunc, self.settings.sources.scenario_names())

    def take_items(self, items: list[pytest.Item], asked: Sequence[pytest.Item]) -> None:
        self.selection.take(items, asked)
        if self.selection:
            self.outputs.require_writable()
        self.sweeps.put_in_order(items)

    def header(self) -> list[str]:
        scenarios = self.selection.scenarios
        of_stack = _describe_setup(self.settings, scenarios) if scenarios else []
        return [one_line(line) for line in (self.settings.describe_file(), *of_stack)] if self.selection else []

    def once(self, item: pytest.Item, when: str) -> AbstractContextManager[None]:
        return self.ledger.once(item, when, is_measured=bool(self.record.runs_of(item.nodeid)))

    @contextmanager
    def open_scenario(
        self, item: pytest.Item, stack: StackSpec, *, announce: Callable[[str], None]
    ) -> Iterator[ScenarioRun]:
        """Measures a test's scenario within the ``with`` block, after all checks; see `RunRecord.open_run`."""
        self._require_first(item)
        refused = self.ledger.noting_refusal
        with refused(item.nodeid):
            self._require_allowed(item, is_one_sweep=self.selection.is_one_sweep)
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
        self._require_allowed(item, is_one_sweep=False)
        _ = self.ledger.policy  # reports its errors before measuring
        with self._held(item, announce):
            yield

    def _require_allowed(self, item: pytest.Item, *, is_one_sweep: bool) -> None:
        """Refuses a test in parallel, or in a process forked from pytest's, whose session would not get the verdict."""
        if os.getpid() != self._pid:
            raise ConfigurationError(IN_A_CHILD, remedy=NO_CHILD)
        refuse_parallel_runs(item.config, is_one_sweep=is_one_sweep)

    def _require_first(self, item: pytest.Item) -> None:
        if self.record.runs_of(item.nodeid) or self.ledger.verdicts_of(item.nodeid):
            self.ledger.refuse_start(item.nodeid)

    def _held(self, item: pytest.Item, announce: Callable[[str], None]) -> AbstractContextManager[None]:
        return self.machine.held(announce, what=item.nodeid, wait_s=self.settings.sources.wait_s(os.environ))

    def finish(self, exit_status: int, items: Sequence[pytest.Item]) -> int:
        """Writes the outputs and turns verdicts into the exit status; `items` were selected to run.

        pytest's own codes keep their meaning: if a test failed for another reason than a verdict, the run ends with 1.
        An output that could not be written makes a green run invalid, and a green strict run without any verdict is
        inconclusive.
        """
        self.outputs.write()
        if not self.sweeps.is_kept or (exit_status == pytest.ExitCode.OK and not self.outputs.is_whole):
            return exit_codes.INVALID
        status = self.ledger.exit_status(exit_status)
        only_listed = map(self._config.getoption, ("collectonly", "showfixtures", "show_fixtures_per_test"))
        if status not in GREEN or any(only_listed):
            return status
        self.enter_unjudged(self._find_unjudged({item.nodeid for item in items}))
        if self.settings.is_worker:
            self._config.workeroutput[UNJUDGED_OUTPUT] = self._unjudged  # type: ignore[attr-defined]
            return status
        self._lacks_verdict = bool(self._unjudged) and self.settings.is_strict and not self.ledger.is_answered
        return exit_codes.INCONCLUSIVE if self._lacks_verdict else status

    def enter_unjudged(self, reasons: Mapping[str, str]) -> None:
        """Records why tests have no verdict; those that ran keep their own reason."""
        self._unjudged |= {name: why for name, why in reasons.items() if why != _NOT_RUN or name not in self._unjudged}

    def _find_unjudged(self, left: Collection[str]) -> dict[str, str]:
        option = self._config.getoption
        is_narrowed = option("lf", default=False) or option("stepwise", default=False)
        asked = (name for name in self.selection.asked if name in left or not is_narrowed)
        found = {}
        for name in dict.fromkeys([*asked, *(run.nodeid for run in self.record.runs)]):
            if any(run.unjudged for run in self.record.runs_of(name)):
                found[name] = "trials were made but never judged; call ldos_gate.check(trials)"
            else:
                deselected = "deselected by a plugin or a conftest.py"
                found[name] = self.ledger.ends.get(name) or (_NOT_RUN if name in left else deselected)
        return found

    def summarize(self, reporter: pytest.TerminalReporter) -> None:
        self.sweeps.summarize(reporter)
        self.outputs.summarize(reporter)
        if not self._lacks_verdict:
            return
        tests: dict[str, list[str]] = {}
        for nodeid, why in self._unjudged.items():
            tests.setdefault(why, []).append(nodeid)
        begin_section(reporter, "ldos: no verdict")
        required = "no test was judged, and this run requires a verdict (--ldos-strict, the default where CI is set)"
        write_line(reporter, f"{required}: exit status {exit_codes.INCONCLUSIVE}")
        for why, (first, *others) in tests.items():
            write_line(reporter, f"  {first}{f' and {len(others)} more' if others else ''}: {why}")
        remedy = "leave them out by -m, -k, --deselect or --ignore, or set LDOS_STRICT=no"
        write_line(reporter, f"  → where none is to be judged, {remedy}")


def _describe_setup(settings: Settings, scenarios: Sequence[pytest.Item]) -> list[str]:
    from pytest_ldos.host.fingerprint import take_fingerprint
    from pytest_ldos.record.choose import recorder_name, recording_available
    from pytest_ldos.robot.stack.choose import describe_stack, stack_available, why_not_ros2
    from pytest_ldos.robot.stack.cpus import find_placement

    spec = settings.sources.stack_spec()
    is_to_be_built = _is_to_be_built(settings, spec)
    refusals: dict[str, None] = {}
    for item in scenarios if not settings.config.option.collectonly else ():
        try:
            if cell_of(item) is None:
                scenario = dataclasses.replace(settings.scenario_of(item), stack=spec)
                require_ready(scenario, settings, is_to_be_built=is_to_be_built, announce=lambda _: None)
        except LdosError as error:
            refusals[f"ldos: {item.name} cannot be measured: {error.summary}"] = None
    head, base = settings.value("head"), settings.value("base")
    versions = [f"ldos: stack of head {head}; tests and settings of this checkout"] if head else []
    versions += [f"ldos: interleaved with base {base}"] if base else []
    if is_to_be_built:
        return [
            *refusals,
            "ldos: stack ros2, whose workspace is built before it is measured",
            *versions,
            *estimate_lines(settings, scenarios, stack=StackKind.ROS2, prefix="in addition to the builds, "),
        ]
    if absent := [each for each in (stack_available(spec), recording_available()) if not each.ok]:
        return [f"ldos: cannot measure: {each.reason} → {each.remedy}" for each in absent]
    cpus = ""
    with suppress(ConfigurationError):  # which is among the refusals
        cpus = find_placement(spec).describe()
    with suppress(ConfigurationError):  # the test reports it
        info = describe_stack(spec)
        host = take_fingerprint(rmw=info.rmw, versions=info.versions, stack_cpus=cpus)
        notes = [f"ldos: {reason}"] if (reason := why_not_ros2(spec)) else []
        notes += [f"ldos: left out of ros_ws: {reasons}"] if (reasons := os.environ.get(LEFT_OUT)) else []
        return [
            *refusals,
            *notes,
            f"ldos: stack {info.description}",
            *versions,
            f"ldos: tracer {recorder_name()}; host class {host.host_class}",
            *estimate_lines(settings, scenarios, stack=info.name),
        ]
    return [*refusals, *versions]


def _is_to_be_built(settings: Settings, stack: StackSpec) -> bool:
    """True if head's ROS 2 workspace is built before it is measured, as requested or for a revision."""
    base = settings.value("base")
    is_revision = settings.value("head") or (base and not (settings.folder / base).is_dir())
    if settings.value("build"):
        return stack.kind is not StackKind.EMBEDDED
    return bool(is_revision) and stack.kind is StackKind.ROS2
