"""The ledger of a session: verdicts, refusals and failures of its tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NoReturn

import pytest

from pytest_ldos.base.errors import LdosError
from pytest_ldos.plugin.marks import describe_skip, measures
from pytest_ldos.plugin.messages import fail_with
from pytest_ldos.plugin.selection import Selection
from pytest_ldos.plugin.settings import Settings

if TYPE_CHECKING:
    from pytest_ldos.host.interference import Interference
    from pytest_ldos.judge.gate.policy import Policy
    from pytest_ldos.judge.gate.verdict import Verdict
    from pytest_ldos.show.report.document import Section

GREEN: Final = frozenset({pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED})
"""Exit statuses of pytest without a failed test."""

_VERDICT_PROPERTY: Final = "ldos.verdict"
"""Property in the reports of a judged test; see `show.report.junit`."""


class Ledger:
    """The verdicts of one session.

    Args:
        selection: the measuring tests.
        failed: tests that failed before the ledger was created.
    """

    def __init__(self, settings: Settings, selection: Selection, *, failed: Collection[str] = ()) -> None:
        self._settings = settings
        self._selection = selection
        self._sections: dict[str, list[Section]] = {}
        self._verdicts: list[Verdict] = []
        self._failed = set(failed)
        self._reported = set(failed)
        self._expected: set[str] = set()
        self._failed_by_verdict: set[str] = set()
        self._begun: set[tuple[str, str]] = set()
        self._first_failures: dict[str, str] = {}
        self._started_again: set[str] = set()
        self._ends: dict[str, str] = {}
        self._is_answered = False
        self.refusals = Refusals()

    @property
    def policy(self) -> Policy:
        """The gate's policy for the tests of this session.

        Raises:
            ConfigurationError: the gate's settings or a test's metrics are invalid.
        """
        from pytest_ldos.judge.gate.policy import Policy

        judged, own = len(self._selection), self._selection.own_names()
        declared = {spec.name for spec in self._settings.sources.toml.metrics}
        return Policy.configured(self._settings.sources.toml.gate, scenarios=judged, own=own | declared)

    # --- entries ----------------------------------------------------------------------

    def enter_section(self, nodeid: str, section: Section, verdict: Verdict) -> None:
        """Adds a judged scenario to the report; its test fails according to the verdict."""
        placed = dataclasses.replace(section, test=self._selection.place_of(nodeid))
        self._sections.setdefault(nodeid, []).append(placed)
        self.enter_verdict(nodeid, verdict)

    def enter_verdict(self, nodeid: str, verdict: Verdict) -> None:
        """Records a verdict without a section, reached by another process or in an earlier session."""
        from pytest_ldos.judge.gate.verdict import is_failure

        self._verdicts.append(verdict)
        if is_failure(verdict, strict=self._settings.is_strict):
            self._failed_by_verdict.add(nodeid)

    def enter_infra(
        self, nodeid: str, scenario: str, error: LdosError, *, stack: str = "", interference: Interference | None = None
    ) -> None:
        """Adds a scenario that could not be measured.

        Args:
            stack: the kind that was requested.
            interference: use of the machine by other processes meanwhile.
        """
        from pytest_ldos.judge.gate.verdict import Verdict
        from pytest_ldos.show.report.compose import compose_infra

        reasons = error.summary.splitlines()  # the test's message has the details
        section = compose_infra(scenario, reasons, stack=stack, interference=interference)
        self.enter_section(nodeid, section, Verdict.INFRA)

    def enter_failure(self, nodeid: str) -> None:
        """Records that a test failed, even if pytest reports otherwise."""
        self._failed.add(nodeid)

    def enter_answer(self) -> None:
        """Records results without a verdict, or a verdict reached by another process."""
        self._is_answered = True

    def enter_report(self, report: pytest.TestReport) -> None:
        """Records from pytest's report a failure, an expected failure, or an end without failure."""
        self._ends[report.nodeid] = _describe_end(report) or self._ends.get(report.nodeid, "")
        self._is_answered |= any(name == _VERDICT_PROPERTY for name, _ in report.user_properties)
        if report.failed:
            self._failed.add(report.nodeid)
            self._reported.add(report.nodeid)
        if hasattr(report, "wasxfail"):
            self._expected.add(report.nodeid)

    # --- a test is run once -----------------------------------------------------------

    @contextmanager
    def once(self, item: pytest.Item, when: str, *, is_measured: bool) -> Iterator[None]:
        """Allows a phase of a measuring test to begin only once, even if a plugin reruns tests.

        Args:
            is_measured: True if the test has already requested a measurement.
        """
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
        """Refuses further measurements and verdicts in a test that a verdict failed."""
        if nodeid in self._failed_by_verdict:
            self.refuse_start(nodeid)

    def refuse_start(self, nodeid: str) -> NoReturn:
        """Fails a restarted test with the outcome of its first start."""
        self._started_again.add(nodeid)
        fail_with(
            f"{self._first_outcome(nodeid)}\n"
            "(not measured again: the first outcome of a test stands, whatever runs it again)\n"
            "  → exclude scenario tests from reruns, or ask for more trials (--ldos-trials, --ldos-max-trials)"
        )

    def _first_outcome(self, nodeid: str) -> str:
        if nodeid in self._first_failures:
            return self._first_failures[nodeid]
        if nodeid not in self._sections:
            return "the test ended without a verdict"
        from pytest_ldos.show.report import failure
        from pytest_ldos.show.report.compose import compose

        return failure.render(compose(self._sections[nodeid]))

    # --- reading ----------------------------------------------------------------------

    @property
    def sections(self) -> list[Section]:
        """The sections of all tests."""
        return [section for of_test in self._sections.values() for section in of_test]

    @property
    def begun_sections(self) -> list[Section]:
        """The sections of all tests that were not refused."""
        of_tests = (found for nodeid, found in self._sections.items() if nodeid not in self.refusals)
        return [section for of_test in of_tests for section in of_test]

    def verdicts_of(self, nodeid: str) -> list[Verdict]:
        """All verdicts of a test so far."""
        return [section.verdict for section in self._sections.get(nodeid, ()) if section.verdict is not None]

    @property
    def is_answered(self) -> bool:
        """True if a test was judged, or has results without a verdict."""
        return self._is_answered or bool(self._verdicts)

    def end_of(self, nodeid: str) -> str:
        """Description of how a test ended that did not fail; empty if it was not run."""
        return self._ends.get(nodeid, "")

    def has_failed(self, nodeid: str) -> bool:
        """True if a test, or one below it, has failed so far."""
        return any(failed == nodeid or failed.startswith(f"{nodeid}::") for failed in self._failed)

    def describe(self, item: pytest.Item) -> None:
        """Adds the properties of all verdicts so far to a test, each once."""
        sections = self._sections.get(item.nodeid)
        if not sections:
            return
        from pytest_ldos.show.report import junit
        from pytest_ldos.show.report.compose import compose

        properties = junit.render(compose(sections))
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
        from pytest_ldos.judge.gate.verdict import exit_code, worst

        return exit_code(worst(self._verdicts), strict=self._settings.is_strict)


def _describe_end(report: pytest.TestReport) -> str:
    """Description of a test's end from its report; empty for a phase after which it continues."""
    if hasattr(report, "wasxfail"):
        return f"expected to fail: {report.wasxfail}"
    if report.skipped:
        return describe_skip(report)
    return "passed without a verdict" if report.when == "call" and report.passed else ""


class Refusals:
    """Tests refused before they measure; each reason is reported once."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        self._refused: set[str] = set()

    def __contains__(self, nodeid: str) -> bool:
        return nodeid in self._refused

    def __len__(self) -> int:
        return len(self._refused)

    @contextmanager
    def noted(self, nodeid: str) -> Iterator[None]:
        """Refuses a test if the ``with`` block raises; a repeated error refers to the first test that had it.

        Raises:
            LdosError: of the same kind.
        """
        try:
            yield
        except LdosError as error:
            self._refused.add(nodeid)
            first = self._first.setdefault(str(error), nodeid)
            if first == nodeid:
                raise
            raise type(error)(f"refused for the same reason as {first}") from None
