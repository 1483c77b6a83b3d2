"""The hooks pytest calls: each hands over to one object and holds nothing itself."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pytest_ldos.plugin import hookspecs
from pytest_ldos.plugin.fixtures import (
    cache_load,
    cpu_limit,
    cpu_load,
    dds_flood,
    guard,
    io_load,
    ldos_gate,
    ldos_loads,
    ldos_scenario,
    ldos_stack,
    ldos_stack_spec,
    ldos_trials,
    memory_load,
    network_impairment,
    noisy_neighbour,
    panda_stack,
)
from pytest_ldos.plugin.launching import ldos_launch, module_ldos_launch
from pytest_ldos.plugin.options import (
    add_options,
    read_sources,
    refuse_base_behind_a_space,
    refuse_unknown_flags,
)
from pytest_ldos.plugin.reporting import refuse_unavailable
from pytest_ldos.plugin.scenarios import make_scenario_tests, refuse_unknown_parts
from pytest_ldos.plugin.session import MeasuringSession
from pytest_ldos.plugin.studies import ldos_study
from pytest_ldos.plugin.sweep import SweepPlugin

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

__all__ = [
    "cache_load",
    "cpu_limit",
    "cpu_load",
    "dds_flood",
    "guard",
    "io_load",
    "ldos_gate",
    "ldos_launch",
    "ldos_loads",
    "ldos_scenario",
    "ldos_stack",
    "ldos_stack_spec",
    "ldos_study",
    "ldos_trials",
    "memory_load",
    "module_ldos_launch",
    "network_impairment",
    "noisy_neighbour",
    "panda_stack",
]


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.add_hookspecs(hookspecs)


def pytest_load_initial_conftests(args: list[str]) -> None:
    refuse_unknown_flags(args)
    refuse_base_behind_a_space(args)


def pytest_configure(config: pytest.Config) -> None:
    session = MeasuringSession(config, read_sources(config, os.environ))
    config.stash[MeasuringSession.KEY] = session
    config.pluginmanager.register(SweepPlugin(config, session), "ldos-sweeps")
    refuse_unavailable(session.value("report"))
    refuse_unknown_parts(config.getoption("markexpr"), session.scenario_names())
    for name, description in session.markers().items():
        config.addinivalue_line("markers", f"{name}: {description}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    make_scenario_tests(metafunc.config.stash[MeasuringSession.KEY], metafunc)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.stash[MeasuringSession.KEY].take_items(items)


def pytest_report_collectionfinish(config: pytest.Config, start_path: Path, items: Sequence[pytest.Item]) -> list[str]:
    return config.stash[MeasuringSession.KEY].header()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    session = item.config.stash[MeasuringSession.KEY]
    session.describe(item)
    report = yield
    session.take_report(report)
    return report


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    session.exitstatus = session.config.stash[MeasuringSession.KEY].finish(exitstatus)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    config.stash[MeasuringSession.KEY].outputs.summarize(terminalreporter)


def pytest_unconfigure(config: pytest.Config) -> None:
    session = config.stash.get(MeasuringSession.KEY, None)
    if session is not None:  # there is none after a usage error
        session.close()
