"""Stand-in for the session, which is created, with its imports, only when a measurement is requested."""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pytest

from pytest_ldos.plugin import options
from pytest_ldos.scenario.options import OPTIONS, OTHER_VARIABLES, find_settings_file, settings_file_in
from pytest_ldos.scenario.words import SCENARIO_DESCRIPTIONS

if TYPE_CHECKING:
    from pytest_ldos.plugin.session import MeasuringSession

_CONFIG: Final = OPTIONS["config"]

_FIXTURES: Final = re.compile(rb"\b(panda_stack|ldos_(stack|scenario|study|trials|gate))\b")


class Standby:
    """Creates the session of one pytest run when a measurement is requested.

    The session has the settings of its tests' project. They are read before collection if the command-line arguments
    lead to a project, and otherwise when its first test file is found.
    """

    KEY: ClassVar[pytest.StashKey[Standby]] = pytest.StashKey()

    def __init__(self, config: pytest.Config, environment: Mapping[str, str]) -> None:
        self._config = config
        self._environment = {name: value for name, value in environment.items() if name.startswith("LDOS_")}
        self._look = cache(settings_file_in)
        self._found: dict[Path, Path | None] = {}
        self._names: dict[str, Path] = {}
        self.session: MeasuringSession | None = None
        self._sessions: dict[Path | None, MeasuringSession] = {}
        self._marks: set[str] = set()
        self._running: pytest.Item | None = None
        self._failed: set[str] = set()
        self._refusal = ""
        self._pid = os.getpid()
        self._set_up: set[str] = set()

    def begin(self) -> None:
        """Registers the marks; creates the session at once if it has settings, to refuse wrong ones early."""
        files = self._files_of_arguments
        is_set = (
            any(self._config.getoption(f"ldos_{name}") is not None for name in OPTIONS)
            or not self._environment.keys() <= OTHER_VARIABLES.keys()
            or "+" in self._config.getoption("markexpr")
        )
        made = [self._made(file) for file in files if file is not None or is_set]
        if len(files) == 1 and made:
            (self.session,) = made
        if not made:
            self._register(options.describe_marks(SCENARIO_DESCRIPTIONS))

    def session_for(self, test_file: Path) -> MeasuringSession:
        """The session for a test file; until collection ends, the first one is that of the run."""
        found = self._made(self._file_for(test_file))
        self.session = self.session or found
        return found

    def wake(self) -> MeasuringSession:
        """The session of the running test, created on the first request.

        A test may request its stack only while it runs; it fails if other tests measure in another project.
        """
        file = self._files_of_arguments[0] if self._running is None else self._file_for(self._running.path)
        if self.session is None or self.session is not self._sessions.get(file):
            if self.session is not None and (self.session.selection or self.session.record.runs):
                from pytest_ldos.plugin.messages import fail_with

                running = "" if self._running is None else self._running.nodeid
                fail_with(_led_apart({self.session.settings.sources.file: "the other tests", file: running}))
            self._sessions.pop(file, None)  # a new session receives the failed tests
            self.session = self._made(file)
        return self.session

    def header(self) -> list[str]:
        return [] if self.session is None else [*self.session.header(), *filter(None, [self._refusal])]

    def _settle(self, items: list[pytest.Item], asked: Sequence[pytest.Item]) -> None:
        """Passes the measuring tests, and those asked for, to their session.

        Refuses tests of several projects, or with one baseline; if tests are only listed, the header has the reason.
        """
        if measuring := [item for item in items if options.measures(item)]:
            from pytest_ldos.plugin.ledger import shared_baseline
            from pytest_ldos.plugin.messages import usage_error

            self.session = self.session_for(measuring[0].path)
            first: dict[Path | None, str] = {}
            for item in measuring:
                first.setdefault(self._file_for(item.path), item.nodeid)
            reason = _led_apart(first) if len(first) > 1 else shared_baseline(measuring, self.session.settings)
            if reason and not self._config.option.collectonly:
                raise usage_error(reason)
            self._refusal = f"ldos: a run of these tests would be refused: {reason}" if reason else ""
        elif asked:
            self.session = self.session or self.session_for(asked[0].path)
        if self.session is not None:
            self.session.take_items(items, asked)

    @cached_property
    def _files_of_arguments(self) -> list[Path | None]:
        """The settings files for the paths of tests on the command line, or in ``testpaths``.

        A settings file given by option applies to all tests; their project is that of the arguments, if they have one.
        """
        here = self._config.invocation_params.dir
        named = [here / argument.partition("::")[0] for argument in self._config.args]
        places = [place for place in named if os.path.exists(place)] or [self._config.rootpath]  # noqa: PTH110 - False for what cannot be a path
        found = list(dict.fromkeys(map(self._search, places)))
        return [None] if self._names_settings and len(found) > 1 else found

    @property
    def _names_settings(self) -> bool:
        return self._config.getoption(f"ldos_{_CONFIG.name}") is not None or _CONFIG.variable in self._environment

    def _file_for(self, test_file: Path) -> Path | None:
        return self._files_of_arguments[0] if self._names_settings else self._search(test_file.parent)

    def _search(self, place: Path) -> Path | None:
        """The settings file above a path, or else above pytest's root or the working directory.

        A file with several names through links keeps the first one.
        """
        if place not in self._found:
            others = (self._config.rootpath, self._config.invocation_params.dir)
            searches = (find_settings_file(start, self._look) for start in (place, *others))
            file = next(filter(None, searches), None)
            self._found[place] = file and self._names.setdefault(os.path.realpath(file), file)
        return self._found[place]

    def _made(self, file: Path | None) -> MeasuringSession:
        if file not in self._sessions:
            from pytest_ldos.plugin.outputs import refuse_unavailable
            from pytest_ldos.plugin.session import MeasuringSession

            sources = options.read_settings(self._config, self._environment, file)
            session = MeasuringSession(self._config, sources, pid=self._pid, failed=self._failed)
            refuse_unavailable(session.settings.value("report"))
            self._register(session.settings.markers())
            self._sessions[file] = session
        return self._sessions[file]

    def _register(self, marks: Mapping[str, str]) -> None:
        for name, description in marks.items():
            if name not in self._marks:
                self._marks.add(name)
                self._config.addinivalue_line("markers", f"{name}: {description}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makemodule(self, module_path: Path) -> None:
        """Reads the settings of a test file's project before its import, which registers its marks."""
        if (file := self._file_for(module_path)) is not None:
            from pytest_ldos.plugin.messages import collecting

            with collecting():
                self._made(file)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None]:
        """Settles the session after all plugins, including ``--lf``, have deselected tests.

        Refuses a combination in ``-m`` with a scenario unknown to all projects of the collected tests.
        """
        if self._sessions:
            from pytest_ldos.plugin.settings import refuse_unknown_parts

            known = {name for each in self._sessions.values() for name in each.settings.sources.scenario_names()}
            refuse_unknown_parts(self._config.getoption("markexpr"), known)
        found = list(filter(options.measures, items))
        yield
        self._settle(items, _asked_for(self._config, found) if found else [])

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._running = item
        self._set_up.add(item.nodeid)
        with self._once(item, "setup"):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
        with self._once(pyfuncitem, "call"):
            return (yield)

    def _once(self, item: pytest.Item, when: str) -> AbstractContextManager[None]:
        return nullcontext() if self.session is None else self.session.once(item, when)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Records a skipped module of measuring tests, such as by `pytest.importorskip`."""
        option, file = self._config.option, self._config.rootpath / report.nodeid
        if not report.skipped or option.markexpr or option.keyword or not file.is_file():
            return
        if _FIXTURES.search(file.read_bytes()):
            self.session_for(file).enter_unjudged({report.nodeid: options.describe_skip(report)})

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        if unjudged := getattr(node, "workeroutput", {}).get(options.UNJUDGED_OUTPUT):
            (self.session or self.wake()).enter_unjudged(unjudged)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Stops handling SIGTERM before other plugins write their results."""
        if self.session is not None:
            self.session.machine.settle()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, None, None]:
        """Records failures, and results of a sweep's cells from pytest-xdist workers.

        Fails a measuring test that ran in another process, whose verdict is missing from this session.
        """
        if self.session is not None and not self._config.pluginmanager.hasplugin("dsession"):
            selection = self.session.selection
            measuring = {each.nodeid for each in (*selection.scenarios, *selection.studies)}
            if report.nodeid in measuring - self._set_up:
                from pytest_ldos.plugin.session import IN_A_CHILD, NO_CHILD

                report.sections.append(("ldos", f"{IN_A_CHILD}\n  → {NO_CHILD}"))
                if report.passed and report.when == "call":
                    report.outcome, report.longrepr = "failed", IN_A_CHILD
        if report.failed:
            self._failed.add(report.nodeid)
        if self.session is not None or hasattr(report, options.CELL_ATTRIBUTE):
            session = self.session or self.session_for(self._config.rootpath / report.nodeid.partition("::")[0])
            session.sweeps.receive(report)
            session.ledger.enter_report(report)
        return (yield)


class _SilentConfig:
    """pytest's config, whose hook for deselected tests reaches no plugin."""

    hook = SimpleNamespace(pytest_deselected=lambda items: None)

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def __getattr__(self, name: str) -> Any:
        return getattr(self._config, name)


def _asked_for(config: pytest.Config, items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The tests selected by ``-m``, ``-k`` and ``--deselect``, regardless of other plugins."""
    asked = list(items)
    for name in ("mark", "main"):
        plugin: Any = config.pluginmanager.get_plugin(name)
        plugin.pytest_collection_modifyitems(items=asked, config=_SilentConfig(config))
    return asked


def _led_apart(tests: Mapping[Path | None, str]) -> str:
    led = "; ".join(f"{test} to {file or 'no settings file'}" for file, test in tests.items())
    return (
        f"tests of one run lead to different settings: {led}"
        f"\n  → run the tests of each project by themselves, or name one file for all: {_CONFIG.flag}=FILE"
    )


def session_of(config: pytest.Config) -> MeasuringSession:
    """The session, created on the first request."""
    return config.stash[Standby.KEY].wake()


def awake_session(config: pytest.Config) -> MeasuringSession | None:
    """The session if it was requested; there is none after a usage error."""
    standby = config.stash.get(Standby.KEY, None)
    return None if standby is None else standby.session
