"""Stand-in for the session until something asks for a measurement: only then is it made, and its imports loaded."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final

import pytest

from pytest_ldos.plugin.marks import CELL_ATTRIBUTE, SWEEP_ATTRIBUTE, describe_marks
from pytest_ldos.scenario.options import OPTIONS, OTHER_VARIABLES, OWN_FILE
from pytest_ldos.scenario.words import SCENARIO_DESCRIPTIONS

if TYPE_CHECKING:
    from collections.abc import Generator

    from pytest_ldos.plugin.session import MeasuringSession

_SHARED_FILE: Final = "pyproject.toml"
_WORD: Final = b"ldos"
_OUR_NAME: Final = b"pytest-ldos"
"""Our name in the settings of projects that only depend on us."""

_PLUS: Final = "+"


class Standby:
    """Makes the session of one pytest run when something asks for a measurement."""

    KEY: ClassVar[pytest.StashKey[Standby]] = pytest.StashKey()

    def __init__(self, config: pytest.Config, environment: Mapping[str, str]) -> None:
        self._config = config
        self._environment = {name: value for name, value in environment.items() if name.startswith("LDOS_")}
        self._session: MeasuringSession | None = None
        self._failed: set[str] = set()
        self._pid = os.getpid()
        self._set_up: set[str] = set()

    def begin(self) -> None:
        """Registers the marks; makes the session at once where anything is set for it, so that a wrong setting is
        refused before tests are collected.
        """
        if self._is_set():
            self._refuse(self.wake())
        marks = describe_marks(SCENARIO_DESCRIPTIONS) if self._session is None else self._session.settings.markers()
        for name, description in marks.items():
            self._config.addinivalue_line("markers", f"{name}: {description}")

    def awake(self) -> MeasuringSession | None:
        """The session, if anything has asked for it."""
        return self._session

    def wake(self) -> MeasuringSession:
        """The session; made when it is first asked for."""
        if self._session is None:
            from pytest_ldos.plugin.options import read_sources
            from pytest_ldos.plugin.session import MeasuringSession

            sources = read_sources(self._config, self._environment)
            self._session = MeasuringSession(self._config, sources, pid=self._pid, failed=self._failed)
        return self._session

    def _refuse(self, session: MeasuringSession) -> None:
        """Refuses reports and scenarios that were asked for and cannot be had."""
        from pytest_ldos.plugin.reporting import refuse_unavailable
        from pytest_ldos.plugin.scenarios import refuse_unknown_parts

        refuse_unavailable(session.settings.value("report"))
        refuse_unknown_parts(self._config.getoption("markexpr"), session.settings.scenario_names())

    def _is_set(self) -> bool:
        """True if command line, environment, ``-m`` or a settings file has a setting of ours, or may have one."""
        given = (self._config.getoption(f"ldos_{name}") for name in OPTIONS)
        return (
            any(value is not None for value in given)
            or not self._environment.keys() <= OTHER_VARIABLES.keys()
            or _PLUS in self._config.getoption("markexpr")
            or (self._config.rootpath / OWN_FILE).is_file()
            or self._may_be_shared()
        )

    def _may_be_shared(self) -> bool:
        """True if ``pyproject.toml`` names us at all; its settings are read later."""
        try:
            text = (self._config.rootpath / _SHARED_FILE).read_bytes()
        except FileNotFoundError:
            return False
        except OSError:
            return True  # reading it as settings says what is wrong
        return _WORD in text.replace(_OUR_NAME, b"")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Stops handling SIGTERM before other plugins write their results."""
        if self._session is not None:
            self._session.machine.settle()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Remembers the tests that run in this process."""
        self._set_up.add(item.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, None, None]:
        """Takes failures, and the result of a sweep's cell that a worker of pytest-xdist measured."""
        if self._session is not None and not self._config.pluginmanager.hasplugin("dsession"):
            self._refuse_elsewhere(self._session, report)
        if report.failed:
            self._failed.add(report.nodeid)
        if self._session is not None or hasattr(report, CELL_ATTRIBUTE) or hasattr(report, SWEEP_ATTRIBUTE):
            session = self.wake()
            session.sweeps.receive(report)
            session.ledger.enter_report(report)
        return (yield)

    def _refuse_elsewhere(self, session: MeasuringSession, report: pytest.TestReport) -> None:
        """Fails a test that measures and ran in another process, whose verdict this session has not."""
        measuring = {each.nodeid for each in (*session.selection.scenarios, *session.selection.studies)}
        if report.nodeid in measuring - self._set_up:
            from pytest_ldos.plugin.preflight import IN_A_CHILD, NO_CHILD

            report.sections.append(("ldos", f"{IN_A_CHILD}\n  → {NO_CHILD}"))
            if report.passed and report.when == "call":
                report.outcome, report.longrepr = "failed", IN_A_CHILD


def session_of(config: pytest.Config) -> MeasuringSession:
    """The session of measurements; made when it is first asked for."""
    return config.stash[Standby.KEY].wake()


def awake_session(config: pytest.Config) -> MeasuringSession | None:
    """The session of measurements, if anything has asked for it; there is none after a usage error either."""
    standby = config.stash.get(Standby.KEY, None)
    return None if standby is None else standby.awake()
