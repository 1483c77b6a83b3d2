"""The measuring tests of a session, and their verdicts, refusals and failures."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pytest

from pytest_ldos.base.errors import ConfigurationError, LdosError
from pytest_ldos.instruments import find_instrument
from pytest_ldos.judge.gate.verdict import Verdict, exit_code, is_failure, worst
from pytest_ldos.plugin.messages import fail_with
from pytest_ldos.plugin.options import MEASURING_FIXTURE, STUDY_FIXTURE, describe_skip, measures
from pytest_ldos.plugin.settings import Settings, asked_instruments, cell_of, in_cell, is_placeholder, study_name

if TYPE_CHECKING:
    from pytest_ldos.host.interference import Interference
    from pytest_ldos.judge.gate.case import Policy
    from pytest_ldos.measure.metrics.catalogue import Catalogue, OwnMetric
    from pytest_ldos.show.report.document import Section


class Selection:
    """The measuring tests of one session.

    Attributes:
        asked: names of those selected on the command line.
        is_one_sweep: True if all tests are cells of sweeps.
    """

    def __init__(self) -> None:
        self.scenarios: list[pytest.Item] = []
        self.studies: list[pytest.Item] = []
        self.asked: list[str] = []
        self.is_one_sweep = False

    def take(self, items: Sequence[pytest.Item], asked: Sequence[pytest.Item]) -> None:
        self.asked = [item.nodeid for item in asked if not is_placeholder(item)]
        self.scenarios = [item for item in items if MEASURING_FIXTURE in getattr(item, "fixturenames", ())]
        self.studies = [item for item in items if STUDY_FIXTURE in getattr(item, "fixturenames", ())]
        self.is_one_sweep = all(cell_of(item) is not None for item in items)

    def __len__(self) -> int:
        return len(self.scenarios) + len(self.studies)


def own_metrics(item: pytest.Item) -> tuple[OwnMetric, ...]:
    """Metrics that plugins and conftest.py files register for a test, those of outer folders first."""
    from pytest_ldos.measure.metrics.catalogue import require_own

    hook = item.ihook.pytest_ldos_metrics
    groups = hook()
    given = [each for each in hook.get_hookimpls() if not (each.wrapper or each.hookwrapper)]
    if len(groups) < len(given):  # pytest leaves out implementations that return None
        require_own(None)
    return tuple(metric for group in reversed(groups) for metric in require_own(group))


def metrics_of(item: pytest.Item, settings: Settings) -> Catalogue:
    from pytest_ldos.measure.metrics.catalogue import built_in_of, catalogue_of

    sources = settings.sources
    return catalogue_of(own_metrics(item), sources.toml.metrics, built_in=built_in_of(sources.stack_spec()))


def shared_baseline(items: Iterable[pytest.Item], settings: Settings) -> str:
    """The reason to refuse two measuring tests with the same baseline; empty if there are none.

    A baseline's name comes from marks, with the values of the test's cell, so that a renamed test keeps its baseline.
    Tests that are always skipped are ignored; conditions as text are unknown before a test runs. A test with wrong
    marks reports them when it runs.
    """
    first: dict[str, str] = {}
    for item in items:
        conditions = [(*mark.args, mark.kwargs.get("condition")) for mark in item.iter_markers("skipif")]
        skips = (not isinstance(each, str) and bool(each) for those in conditions for each in those)
        if any(item.iter_markers("skip")) or any(skips):
            continue
        with suppress(LdosError):
            is_study = STUDY_FIXTURE in getattr(item, "fixturenames", ())
            name = study_name(item) if is_study else in_cell(item, settings.scenario_of(item)).name
            if (other := first.setdefault(name, item.nodeid)) != item.nodeid:
                return describe_shared(name, other, item.nodeid)
    return ""


def describe_shared(name: str, one: str, other: str) -> str:
    return (
        f"{one} and {other} would share the baseline '{name}': the second would be judged by what the first measured"
        f'\n  → give one a name of its own: name="…" in its mark (or in that of its set of parameters: '
        f'pytest.param(…, marks=pytest.mark.baseline(name="left"))), or deselect one'
    )


def refuse_head(settings: Settings, what: str) -> None:
    """Refuses ``--ldos-head`` for a test of programs of this environment (`what`, with a verb) instead of a stack."""
    if head := settings.value("head"):
        raise ConfigurationError(
            f"--ldos-head {head}: only a stack is measured of a revision, and {what} of this environment",
            remedy="leave out this test, or measure without --ldos-head in a checkout of the revision",
        )


def refuse_parallel_runs(config: pytest.Config, *, is_one_sweep: bool) -> None:
    """Refuses tests in parallel processes, which disturb each other; only cells of sweeps wait for each other."""
    worker_input: Any = getattr(config, "workerinput", None)
    if worker_input is None:
        return
    if not is_one_sweep:
        raise ConfigurationError(
            f"scenario tests cannot run in pytest-xdist workers ({worker_input['workercount']} here): other tests "
            "would disturb them",
            remedy="run them alone, with -n 0; only a sweep (ldos_sweep), without other tests, can be spread",
        )
    of_all_scenarios = ("report", "summary", "benchmark_json")  # which workers do not have
    if written := [name for name in of_all_scenarios if config.getoption(f"ldos_{name}")]:
        raise ConfigurationError(
            f"--ldos-{written[0].replace('_', '-')} cannot be written by pytest-xdist's workers",
            remedy="leave it out: a sweep's tables are in .ldos/sweeps; or run without workers",
        )


GREEN: Final = frozenset({pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED})
"""Exit statuses of pytest without a failed test."""


class Ledger:
    """The verdicts of one session.

    Attributes:
        failed: tests that failed so far, even if pytest reports otherwise.
        is_answered: True if a test was judged, also by another process, or has results without a verdict.
        refused: tests refused before they measured.
        ends: how tests ended that did not fail.
    """

    def __init__(self, settings: Settings, selection: Selection, *, failed: Collection[str] = ()) -> None:
        self._settings = settings
        self._selection = selection
        self._sections: dict[str, list[Section]] = {}
        self._verdicts: list[Verdict] = []
        self.failed = set(failed)
        self._reported = set(failed)
        self._expected: set[str] = set()
        self._failed_by_verdict: set[str] = set()
        self._begun: set[tuple[str, str]] = set()
        self._first_failures: dict[str, str] = {}
        self._started_again: set[str] = set()
        self._refused_first: dict[str, str] = {}
        self.is_answered = False
        self.refused: set[str] = set()
        self.ends: dict[str, str] = {}

    @property
    def policy(self) -> Policy:
        from pytest_ldos.judge.gate.case import Policy

        selection, toml = self._selection, self._settings.sources.toml
        own = {metric.name for item in selection.scenarios for metric in own_metrics(item)}
        instruments = {name for item in selection.studies for name in asked_instruments(item)}
        own |= {each.name for name in instruments for each in find_instrument(name).quantities}
        own |= {spec.name for spec in toml.metrics}
        return Policy.configured(toml.gate, scenarios=len(selection), own=own)

    def enter_section(self, nodeid: str, section: Section, verdict: Verdict) -> None:
        from pytest_ldos.show.report.document import Place

        places = {item.nodeid: item.location for item in self._selection.scenarios}
        file, line, _ = places.get(nodeid, ("", None, ""))
        place = None if line is None else Place(file=Path(file).as_posix(), line=line + 1)
        self._sections.setdefault(nodeid, []).append(dataclasses.replace(section, test=place))
        self.enter_verdict(nodeid, verdict)

    def enter_verdict(self, nodeid: str, verdict: Verdict) -> None:
        """Records a verdict; without a section, it is that of another process or of an earlier session."""
        self._verdicts.append(verdict)
        self.is_answered = True
        if is_failure(verdict, strict=self._settings.is_strict):
            self._failed_by_verdict.add(nodeid)

    def enter_infra(
        self, nodeid: str, scenario: str, error: LdosError, *, stack: str = "", interference: Interference | None = None
    ) -> None:
        from pytest_ldos.show.report.compose import compose_infra

        reasons = error.summary.splitlines()  # the test's message has the details
        section = compose_infra(scenario, reasons, stack=stack, interference=interference)
        self.enter_section(nodeid, section, Verdict.INFRA)

    def enter_report(self, report: pytest.TestReport) -> None:
        if hasattr(report, "wasxfail"):
            self.ends[report.nodeid] = f"expected to fail: {report.wasxfail}"
            self._expected.add(report.nodeid)
        elif report.skipped:
            self.ends[report.nodeid] = describe_skip(report)
        elif report.when == "call" and report.passed:
            self.ends[report.nodeid] = "passed without a verdict"
        self.is_answered |= any(name == "ldos.verdict" for name, _ in report.user_properties)
        if report.failed:
            self.failed.add(report.nodeid)
            self._reported.add(report.nodeid)

    @contextmanager
    def once(self, item: pytest.Item, when: str, *, is_measured: bool) -> Iterator[None]:
        """Lets a phase of a measuring test begin only once, even if a plugin reruns tests."""
        begun = (item.nodeid, when)
        if begun in self._begun and (is_measured or measures(item)):
            self.refuse_start(item.nodeid)
        self._begun.add(begun)
        try:
            yield
        except BaseException as error:
            text = f"{type(error).__name__}: {error}" if isinstance(error, Exception) else str(error)
            self._first_failures.setdefault(item.nodeid, text)
            raise

    def refuse_after_failure(self, nodeid: str) -> None:
        """Refuses to measure or judge in a test that a verdict has failed."""
        if nodeid in self._failed_by_verdict:
            self.refuse_start(nodeid)

    def refuse_start(self, nodeid: str) -> NoReturn:
        """Fails a restarted test with the outcome of its first start."""
        self._started_again.add(nodeid)
        outcome = self._first_failures.get(nodeid, "the test ended without a verdict")
        if nodeid not in self._first_failures and nodeid in self._sections:
            from pytest_ldos.show.report.compose import compose
            from pytest_ldos.show.report.terminal import render_failure

            outcome = render_failure(compose(self._sections[nodeid]))
        fail_with(
            f"{outcome}\n"
            "(not measured again: the first outcome of a test stands, whatever runs it again)\n"
            "  → exclude scenario tests from reruns, or ask for more trials (--ldos-trials, --ldos-max-trials)"
        )

    @contextmanager
    def noting_refusal(self, nodeid: str) -> Iterator[None]:
        """Refuses a test if the ``with`` block raises; a repeated error refers to the first test that had it."""
        try:
            yield
        except LdosError as error:
            self.refused.add(nodeid)
            first = self._refused_first.setdefault(str(error), nodeid)
            if first == nodeid:
                raise
            raise type(error)(f"refused for the same reason as {first}") from None

    @property
    def sections(self) -> list[Section]:
        return [section for of_test in self._sections.values() for section in of_test]

    @property
    def begun_sections(self) -> list[Section]:
        return [each for nodeid, found in self._sections.items() if nodeid not in self.refused for each in found]

    def verdicts_of(self, nodeid: str) -> list[Verdict]:
        return [section.verdict for section in self._sections.get(nodeid, ()) if section.verdict is not None]

    def has_failed(self, nodeid: str) -> bool:
        """True if a test, or one below it, has failed so far."""
        return any(failed == nodeid or failed.startswith(f"{nodeid}::") for failed in self.failed)

    def describe(self, item: pytest.Item) -> None:
        """Adds the verdicts so far to a test's properties, each once."""
        if not (sections := self._sections.get(item.nodeid)):
            return
        from pytest_ldos.show.report.compose import compose
        from pytest_ldos.show.report.workflow_commands import junit_properties

        properties = junit_properties(compose(sections))
        others = [each for each in item.user_properties if each[0] not in properties]
        item.user_properties[:] = [*others, *properties.items()]

    @property
    def unreported(self) -> set[str]:
        """Tests failed by a verdict or by a restart for which pytest reports no failure."""
        return (self._failed_by_verdict | self._started_again) - self._reported - self._expected

    def exit_status(self, pytests: int) -> int:
        """The exit status by the worst verdict, or pytest's own if a test failed for another reason.

        A failing verdict decides even if a plugin hid the failure from pytest.
        """
        unreported = self.unreported
        if pytests != pytest.ExitCode.TESTS_FAILED and not (unreported and pytests in GREEN):
            return pytests
        failed = self._reported | unreported
        if not failed or not failed <= self._failed_by_verdict:
            return pytest.ExitCode.TESTS_FAILED
        return exit_code(worst(self._verdicts), strict=self._settings.is_strict)
