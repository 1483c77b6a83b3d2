"""Turns failures of tests that measure time into skips where other programs took the CPUs; the skip says how much.

A test with the mark ``measures_time`` asserts rates or durations. These say something about the code only while the
machine has spare CPU time, so that condition is measured during the test.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import suppress

import psutil
import pytest

MARK = "measures_time"
_LEAST_S = 0.5
"""CPU seconds below which a share says nothing: the kernel counts in hundredths, so that a moment is idle or all taken."""

MOST_OF_OTHERS = 0.2
"""The share of all CPUs that other programs may use while a test measures time."""


class OthersWatch:
    """CPU time that neither this process nor its children used, from when it is made."""

    def __init__(self) -> None:
        self._idle_s, self._all_s = _machine_s()
        self._ours_s = _ours_s()

    def share(self) -> float:
        """The share of all CPUs that others used; a hypervisor that takes a CPU away is one of them."""
        idle_s, all_s = _machine_s()
        passed_s = all_s - self._all_s
        if passed_s < _LEAST_S:
            return 0.0
        others_s = passed_s - (idle_s - self._idle_s) - (_ours_s() - self._ours_s)
        return max(others_s / passed_s, 0.0)


def _machine_s() -> tuple[float, float]:
    """Idle CPU seconds, and all of them. Interrupts count as idle: floods of the tests cause them."""
    times = psutil.cpu_times()
    nobody_s = times.idle + times.iowait + times.irq + times.softirq
    return nobody_s, nobody_s + times.user + times.nice + times.system + times.steal


def _ours_s() -> float:
    """CPU seconds of this process, its descendants and those of them that have ended."""
    used_s = sum(os.times()[:4])
    for each in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            used_s += sum(each.cpu_times()[:4])
    return used_s


_watch = pytest.StashKey[OthersWatch]()
_measures = pytest.StashKey[bool]()
_shares = pytest.StashKey[dict[str, float]]()
_was_skipped = pytest.StashKey[bool]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.session.stash[_measures] = item.get_closest_marker(MARK) is not None
    if item.session.stash[_measures]:
        item.stash[_watch] = OthersWatch()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Notes the share while a measurement is made that several tests have."""
    if fixturedef.scope == "function" or not request.session.stash.get(_measures, False):
        return (yield)
    watch = OthersWatch()
    try:
        return (yield)
    finally:
        shares = request.node.stash.setdefault(_shares, {})
        shares[fixturedef.argname] = max(watch.share(), shares.get(fixturedef.argname, 0.0))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Makes a skip of a failure; of one in the teardown only if the test itself became a skip."""
    report = yield
    if item.get_closest_marker(MARK) and (report.when != "teardown" or item.stash.get(_was_skipped, False)):
        share = _worst_share(item)
        if report.failed and share > MOST_OF_OTHERS:
            _skip(report, share)
            item.stash[_was_skipped] = True
    return report


def _worst_share(item: pytest.Item) -> float:
    """The largest share during this test, or while a fixture that it has was made."""
    assert isinstance(item, pytest.Function)
    made = [share for node in item.listchain() for share in node.stash.get(_shares, {}).items()]
    return max([item.stash[_watch].share(), *(share for name, share in made if name in item.fixturenames)])


def _skip(report: pytest.TestReport, share: float) -> None:
    """Makes a skip of a failure, with the figure and the failure's first line."""
    found = str(getattr(report.longrepr, "reprcrash", report.longrepr)).partition("\n")[0]
    path, line, _ = report.location
    reason = (
        f"it measures time, and other programs used {100 * share:.0f} % of the CPUs "
        f"({100 * MOST_OF_OTHERS:.0f} % at most); it failed with: {found}"
    )
    report.outcome = "skipped"
    report.longrepr = (path, line or 0, reason)
