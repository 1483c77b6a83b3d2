"""Checks before the first start of a scenario: everything known by then that its verdict needs."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from pytest_ldos.base.errors import ConfigurationError, LdosError, RecordUnreadable
from pytest_ldos.plugin.scenarios import cell_of
from pytest_ldos.plugin.settings import Settings

if TYPE_CHECKING:
    import pytest

    from pytest_ldos.judge.baseline.key import BaselineKey
    from pytest_ldos.judge.baseline.store import BaselineStores
    from pytest_ldos.scenario.model import ScenarioSpec, StackSpec

IN_A_CHILD: Final = "scenario tests cannot run in a child process of pytest: verdict, baseline and report would be lost"
NO_CHILD: Final = "leave out what starts one for each test, such as --forked or the mark forked of pytest-forked"


def require_ready(
    spec: ScenarioSpec, settings: Settings, *, is_to_be_built: bool, announce: Callable[[str], None]
) -> None:
    """Refuses a scenario whose goals, baseline or calibration cannot be used; announces unavailable profilers.

    Args:
        is_to_be_built: True if the stack is known only after a build; then only its goals are checked.

    Raises:
        ConfigurationError: there are no such goals.
        RecordUnreadable: the baseline or the calibration cannot be read.
    """
    from pytest_ldos.robot.stack.choose import require_goals

    require_goals(spec.stack, spec.goals)
    if not is_to_be_built:
        _require_records(spec, settings)
    if settings.watch_spec.is_asked:
        from pytest_ldos.campaign.watching import Watching

        for note in Watching(settings.watch_spec).notes:
            announce(note)


def describe_refusals(
    scenarios: Sequence[pytest.Item], settings: Settings, stack: StackSpec, *, is_to_be_built: bool
) -> list[str]:
    """Lines on scenarios that will be refused, without cells of sweeps."""
    found = {}
    for item in scenarios:
        try:
            if cell_of(item) is None:
                spec = dataclasses.replace(settings.scenario_of(item), stack=stack)
                require_ready(spec, settings, is_to_be_built=is_to_be_built, announce=lambda _: None)
        except LdosError as error:
            found[f"ldos: {item.name} cannot be measured: {error.summary}"] = item
    return list(found)


def require_goals_of(spec: ScenarioSpec, goals: Any) -> None:
    """Refuses an unknown name of a goal set; goals themselves need no name.

    Raises:
        ConfigurationError: names the known ones.
    """
    from pytest_ldos.robot.stack.choose import require_goals

    if isinstance(goals, str):
        require_goals(spec.stack, goals)


def refuse_child_process(pid: int) -> None:
    """Refuses a test in a process forked from pytest's, whose session would not receive the verdict.

    Args:
        pid: of the process that pytest runs in.

    Raises:
        ConfigurationError: pytest-forked, or a plugin like it, runs the test.
    """
    if os.getpid() != pid:
        raise ConfigurationError(IN_A_CHILD, remedy=NO_CHILD)


def require_place(spec: ScenarioSpec, settings: Settings, *, is_to_be_built: bool) -> None:
    """Refuses a run that would become a baseline, by request or as the first, if it cannot be written.

    Raises:
        NotWritten, ConfigurationError: see `require_writable_file`.
    """
    from pytest_ldos.base.writable import require_writable_file

    key = None if is_to_be_built else _key_of(spec)
    if key is None:
        return
    stored = settings.stores.find(key)
    is_first = stored is None and not settings.is_strict and not settings.value("base")
    if settings.value("update_baseline") or is_first:
        require_writable_file(key.file(settings.stores.local) if stored is None else stored.file)


def _key_of(spec: ScenarioSpec) -> BaselineKey | None:
    """The key of a scenario's records; ``None`` if its stack cannot be started, which is reported later."""
    from pytest_ldos.host.fingerprint import take_fingerprint
    from pytest_ldos.judge.baseline.key import BaselineKey
    from pytest_ldos.robot.stack.choose import describe_stack, stack_available

    if not stack_available(spec.stack).ok:
        return None
    info = describe_stack(spec.stack)
    host = take_fingerprint(rmw=info.rmw, versions=info.versions)
    return BaselineKey(info.name, host.host_class, spec.name)


def _require_records(spec: ScenarioSpec, settings: Settings) -> None:
    from pytest_ldos.judge.baseline.lookup import UnreadableCalibration, find_calibration_of

    key = _key_of(spec)
    if key is None:
        return
    if not settings.value("update_baseline") and not settings.value("base"):
        _require_baseline(settings.stores, key)
    known = find_calibration_of(settings.stores, key)
    if isinstance(known, UnreadableCalibration):
        raise RecordUnreadable(f"the calibration cannot be read: {known.reason}")


def _require_baseline(stores: BaselineStores, key: BaselineKey) -> None:
    from pytest_ldos.measure.trial.artifacts import read_trials

    stored = stores.find(key)
    if stored is None:
        return
    try:
        read_trials(stored.file)
    except RecordUnreadable as error:
        raise RecordUnreadable(f"the baseline cannot be read: {error.message}", remedy=error.remedy) from None
