"""The hooks that pytest calls: each calls one object and holds no state.

Every pytest run loads the imports of this module, even if it measures nothing; see `standby`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ldos.plugin import fixtures, hookspecs
from pytest_ldos.plugin.marks import makes_tests
from pytest_ldos.plugin.options import add_options, refuse_unknown_flags, refuse_values_taken_for_the_root
from pytest_ldos.plugin.standby import Standby, awake_session

if TYPE_CHECKING:
    from collections.abc import Generator


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.add_hookspecs(hookspecs)
    pluginmanager.register(fixtures, "ldos-fixtures")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> None:
    refuse_unknown_flags(args)
    refuse_values_taken_for_the_root(early_config, os.environ)


def pytest_configure(config: pytest.Config) -> None:
    standby = Standby(config, os.environ)
    config.stash[Standby.KEY] = standby
    config.pluginmanager.register(standby, "ldos-standby")
    standby.begin()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    session = awake_session(node.config)
    if session is not None:
        session.sweeps.send_done(node)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if makes_tests(metafunc):
        metafunc.config.stash[Standby.KEY].session_for(metafunc.definition.path).make_tests(metafunc)


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    return config.stash[Standby.KEY].header()


def pytest_runtest_setup(item: pytest.Item) -> None:
    session = awake_session(item.config)
    if session is not None:
        session.sweeps.skip_done(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    session = awake_session(item.config)
    if session is None:
        return (yield)
    session.ledger.describe(item)
    report = yield
    if report.failed:
        session.ledger.enter_failure(item.nodeid)
    session.sweeps.attach_result(item, report)
    return report


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    measuring = awake_session(session.config)
    if measuring is not None:
        session.exitstatus = measuring.finish(exitstatus, session.items)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    session = awake_session(config)
    if session is not None:
        session.summarize(terminalreporter)


def pytest_unconfigure(config: pytest.Config) -> None:
    session = awake_session(config)
    if session is not None:
        session.close()
