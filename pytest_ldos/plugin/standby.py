"""Stand-in for the session until something asks for a measurement: only then is it made, and its imports loaded."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pytest

from pytest_ldos.plugin.marks import CELL_ATTRIBUTE, SWEEP_ATTRIBUTE, UNJUDGED_OUTPUT, describe_marks, describe_skip
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

_FIXTURES: Final = re.compile(rb"\b(panda_stack|ldos_(stack|scenario|study|trials|gate))\b")

_SELECTING_PLUGINS: Final = ("mark", "main")
"""Parts of pytest that select tests by its own options."""


class Standby:
    """Makes the session of one pytest run when something asks for a measurement."""

    KEY: ClassVar[pytest.StashKey[Standby]] = pytest.StashKey()

    def __init__(self, config: pytest.Config, environment: Mapping[str, str]) -> None:
        self._config = config
        self._environment = {name: value for name, value in environment.items() if name.startswith("LDOS_")}
        self._session: MeasuringSession | None = None
        self._failed: set[str] = set()

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
            self._session = MeasuringSession(self._config, sources, failed=self._failed)
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

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Lets a test that measures be set up once."""
        if self._session is None:
            return (yield)
        with self._session.once(item, "setup"):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
        """Lets the function of a test that measures run once."""
        if self._session is None:
            return (yield)
        with self._session.once(pyfuncitem, "call"):
            return (yield)

    @pytest.hookimpl
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Takes a module of tests that measure which is skipped as a whole, as by `pytest.importorskip`."""
        option = self._config.option
        if report.skipped and not (option.markexpr or option.keyword) and self._names_fixtures(report.nodeid):
            self.wake().enter_unjudged({report.nodeid: describe_skip(report)})

    def _names_fixtures(self, nodeid: str) -> bool:
        file = self._config.rootpath / nodeid
        return file.is_file() and _FIXTURES.search(file.read_bytes()) is not None

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Takes the tests that a worker of pytest-xdist was to measure and did not judge."""
        unjudged = getattr(node, "workeroutput", {}).get(UNJUDGED_OUTPUT)
        if unjudged:
            self.wake().enter_unjudged(unjudged)

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Takes failures, and the result of a sweep's cell that a worker of pytest-xdist measured."""
        if report.failed:
            self._failed.add(report.nodeid)
        if self._session is not None or hasattr(report, CELL_ATTRIBUTE) or hasattr(report, SWEEP_ATTRIBUTE):
            session = self.wake()
            session.sweeps.receive(report)
            session.ledger.enter_report(report)


class _SilentConfig:
    """pytest's settings, whose hook for deselected tests reaches no plugin."""

    hook = SimpleNamespace(pytest_deselected=lambda items: None)

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def __getattr__(self, name: str) -> Any:
        return getattr(self._config, name)


def asked_for(config: pytest.Config, items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The tests that ``-m``, ``-k`` and ``--deselect`` leave, whatever other plugins deselect."""
    asked = list(items)
    for name in _SELECTING_PLUGINS:
        plugin: Any = config.pluginmanager.get_plugin(name)
        plugin.pytest_collection_modifyitems(items=asked, config=_SilentConfig(config))
    return asked


def session_of(config: pytest.Config) -> MeasuringSession:
    """The session of measurements; made when it is first asked for."""
    return config.stash[Standby.KEY].wake()


def awake_session(config: pytest.Config) -> MeasuringSession | None:
    """The session of measurements, if anything has asked for it; there is none after a usage error either."""
    standby = config.stash.get(Standby.KEY, None)
    return None if standby is None else standby.awake()
