"""Options, marks and hooks of the plugin, and values of ours that pytest would mistake for paths of tests.

Before it knows a plugin's options, pytest looks for its root and its settings above every argument that exists on disk.
A value after a space is such an argument; one joined to its option by ``=`` is not.

Every pytest run with the plugin installed loads this module.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_ldos.instruments import MODULES
from pytest_ldos.scenario.options import OPTIONS

if TYPE_CHECKING:
    from pytest_ldos.api import OwnMetric
    from pytest_ldos.scenario.settings import Sources


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("ldos", "performance of a manipulation stack, from traces (pytest-ldos)")
    for option in OPTIONS.values():
        kind: dict[str, Any] = {"metavar": option.metavar}
        if option.is_flag:
            kind = {"action": "store_true"}
        elif option.is_repeatable:
            kind["action"] = "append"
        group.addoption(option.flag, dest=f"ldos_{option.name}", default=None, help=option.help, **kind)


_ROS_PLUGINS: Final = ("launch_testing", "launch_ros", "launch_pytest")


def leave_out_unloadable(manager: pytest.PytestPluginManager) -> None:
    """Blocks pytest plugins of ROS 2 that cannot be loaded, since they would end pytest.

    ``PYTHONPATH`` offers them to every pytest where ROS 2 is sourced. They need Python packages that a virtual
    environment may lack, and some need an older pytest. Each is loaded on trial, by a manager of its own. They are
    blocked in time only if this plugin is loaded before them, by ``-pldos``.
    """
    left_out: dict[str, str] = {}
    trial = None
    for name in _ROS_PLUGINS:
        if manager.has_plugin(name) or manager.is_blocked(name):
            continue
        if trial is None:
            trial = pytest.PytestPluginManager()
            trial.hook.pytest_addhooks.call_historic(kwargs={"pluginmanager": trial})
        try:
            trial.load_setuptools_entrypoints("pytest11", name=name)
            trial.check_pending()
        except Exception as error:  # noqa: BLE001 - any error would end pytest
            left_out[name] = str(error.__cause__ or error).rpartition("\n")[2]
            manager.set_blocked(name)
            trial = None
    if left_out:
        from pytest_ldos.base.text import one_line

        why = one_line(next(iter(left_out.values())))
        text = f"ldos: ROS 2's {', '.join(left_out)} not loaded: {why} → pip install 'pytest-ldos[ros2]'"
        manager.register(type("LeftOut", (), {"pytest_report_header": lambda _: text})(), "ldos-left-out")


def refuse_unknown_flags(arguments: list[str]) -> None:
    known = {option.flag for option in OPTIONS.values()}
    for argument in arguments:
        flag = argument.partition("=")[0]
        if flag.startswith("--ldos") and flag not in known:
            from pytest_ldos.base.errors import suggest
            from pytest_ldos.plugin.messages import usage_error

            raise usage_error(f"unknown option {flag}\n  → {suggest(flag, known)}")


def read_settings(config: pytest.Config, environment: Mapping[str, str], found: Path | None) -> Sources:
    from pytest_ldos.plugin.messages import refused_session
    from pytest_ldos.scenario.fields import parse_value
    from pytest_ldos.scenario.settings import read_environment, read_sources

    given = {option: config.getoption(f"ldos_{option.name}") for option in OPTIONS.values()}
    with refused_session():
        return read_sources(
            found,
            root=config.rootpath,
            here=config.invocation_params.dir,
            command_line={
                option.name: parse_value(option, value, option.flag)
                for option, value in given.items()
                if value is not None
            },
            environment=read_environment(environment),
        )


_MARKS_OF_A_ROOT: Final = (
    "pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg", "setup.py",
)  # fmt: skip
"""Files by which pytest recognises the root of a project."""


def refuse_values_taken_for_the_root(config: pytest.Config, environment: Mapping[str, str]) -> None:
    """Refuses a value after a space that led pytest to another root."""
    if config.known_args_namespace.inifilename:
        return
    found = config.rootpath if config.inipath is None else config.inipath.parent
    flags = {option.flag for option in OPTIONS.values() if not option.is_flag}
    for arguments in (shlex.split(environment.get("PYTEST_ADDOPTS", "")), config.invocation_params.args):
        for flag, value in pairwise(takewhile("--".__ne__, map(str, arguments))):
            if flag in flags and _exists(config, value) and found != _root_without_values(config):
                from pytest_ldos.plugin.messages import usage_error

                raise usage_error(
                    f"{flag} {value}: pytest takes {value} for a place of tests, and its settings and root from there"
                    f"\n  → write {flag}={value}"
                )


def _root_without_values(config: pytest.Config) -> Path:
    """The root that pytest finds by the other arguments, or by the working directory without any."""
    here = config.invocation_params.dir
    files = [argument.partition("::")[0] for argument in config.known_args_namespace.file_or_dir]
    places = [here / file for file in files if _exists(config, file)]
    start = _common_folder(places) if places else here
    marked = (each for each in (start, *start.parents) if any((each / name).is_file() for name in _MARKS_OF_A_ROOT))
    return next(marked, _common_folder([here, start]))


def _exists(config: pytest.Config, place: str) -> bool:
    try:
        return (config.invocation_params.dir / place).exists()
    except (OSError, ValueError):  # too long for a name, or with a null byte
        return False


def _common_folder(places: Iterable[Path]) -> Path:
    folders = [os.path.abspath(each if each.is_dir() else each.parent) for each in places]  # noqa: PTH100 - keeps links, as pytest does
    return Path(os.path.commonpath(folders))


SCENARIO_MARK: Final = "ldos_scenario"
CHOICE_MARK: Final = "ldos_scenarios"
SWEEP_MARK: Final = "ldos_sweep"

SCENARIO_FIXTURE: Final = "ldos_scenario"
CELL_FIXTURE: Final = "ldos_cell"
STUDY_FIXTURE: Final = "ldos_study"
MEASURING_FIXTURE: Final = "ldos_stack"

CELL_ATTRIBUTE: Final = "ldos_cell"
"""Attribute of a test's report: the sweep of its cell, and the cell's result unless it is an earlier one, as JSON."""

DONE_INPUT: Final = "ldos_sweeps"
"""Key in the input of a pytest-xdist worker: completed cells, as JSON."""

UNJUDGED_OUTPUT: Final = "ldos_unjudged"
"""Key in the output of a pytest-xdist worker: measuring tests without a verdict, with reasons."""

_KEYWORDS: Final = "(name=…, trials=…, max_trials=…, warmup=…, seeds=…, success_rate=…, goals=…, unavailable=…)"


def measures(test: Any) -> bool:
    """True if a test, or a function from which tests are made, requests a stack or an instrument."""
    fixtures = getattr(test, "fixturenames", ())
    return MEASURING_FIXTURE in fixtures or STUDY_FIXTURE in fixtures


def marks_of(node: pytest.Item) -> Iterator[pytest.Mark]:
    """The marks of a test, the closest first: of its parameter set, function, class and module."""
    of_parameters = getattr(getattr(node, "callspec", None), "marks", ())
    yield from (each.mark if isinstance(each, pytest.MarkDecorator) else each for each in of_parameters)
    yield from node.iter_markers()


def describe_marks(scenarios: Mapping[str, str]) -> dict[str, str]:
    """All marks with their descriptions; those of the scenarios are given by name."""
    measures_as = "the fixture ldos_study measures as 'ldos {}' does"
    return {
        **{f"{name}{_KEYWORDS}": f"scenario of pytest-ldos: {text}" for name, text in scenarios.items()},
        **{f"{mark_name(each)}(name=…, **settings)": measures_as.format(each.replace("_", "-")) for each in MODULES},
        f"{SCENARIO_MARK}(scenario, name=…)": "the scenario of pytest-ldos that a test measures; 'a+b' is both at once",
        f"{SWEEP_MARK}(address, values)": "a test for each value of a setting of its scenario; several make a grid",
        f"{CHOICE_MARK}(*scenarios, name='left-{{scenario}}')": "for which scenarios a test with the fixture "
        "ldos_scenario is made, by default all",
    }


def describe_skip(report: pytest.CollectReport | pytest.TestReport) -> str:
    why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
    return f"skipped: {str(why).removeprefix('Skipped: ')}"


def mark_name(instrument: str) -> str:
    return f"ldos_{instrument.replace('-', '_')}"


def pytest_ldos_metrics() -> Iterable[OwnMetric]:
    """Return metrics of your own, which are measured, recorded, judged and reported for each trial like T1 to T5.

    Called when a measuring test begins, in its conftest.py files and in all plugins.
    Import `pytest_ldos.api` within the function, so that runs which measure nothing remain fast::

        def pytest_ldos_metrics():
            from pytest_ldos import api

            return [api.OwnMetric(name="plan_points", title="points of the plan", unit="",
                                  better=api.Better.LOWER, measure=count_points)]

    A name that is taken, or a value that is not an `OwnMetric`, fails the test before it measures.
    """
    raise NotImplementedError
