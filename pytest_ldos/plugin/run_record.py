"""The record of a session: its scenario runs and their folder."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.plugin.ledger import Ledger
from pytest_ldos.plugin.scenario_run import ScenarioRun
from pytest_ldos.plugin.scenarios import require_loads
from pytest_ldos.plugin.selection import describe_shared
from pytest_ldos.plugin.settings import Settings
from pytest_ldos.plugin.versions import MeasuredVersions

if TYPE_CHECKING:
    from pytest_ldos.campaign.versions.version import Version
    from pytest_ldos.measure.trial.artifacts import ScenarioFolder
    from pytest_ldos.measure.trial.record import TrialSet
    from pytest_ldos.scenario.model import ScenarioSpec


class RunRecord:
    """The scenario runs of one session.

    Attributes:
        folder: folder of all its runs; ``None`` until the first run needs it.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._versions = MeasuredVersions(settings)
        self.runs: list[ScenarioRun] = []
        self.folder: Path | None = None

    @property
    def trial_sets(self) -> list[TrialSet]:
        """All trials of all runs."""
        return [trials for run in self.runs for trials in run.trial_sets]

    def runs_of(self, nodeid: str) -> list[ScenarioRun]:
        """The runs of one test."""
        return [run for run in self.runs if run.nodeid == nodeid]

    def new_folder(self, name: str) -> ScenarioFolder:
        """Creates a folder for one scenario, and that of the session if needed.

        Raises:
            OSError: it cannot be created.
        """
        from pytest_ldos.measure.trial.artifacts import new_run_folder, new_scenario_folder

        if self.folder is None:
            self.folder = new_run_folder(self._settings.output)
        return new_scenario_folder(self.folder, name)

    def refuse_shared(self, name: str, nodeid: str) -> None:
        """Refuses a test that measures under another's name, including marks added while it runs.

        Raises:
            ConfigurationError: another test of the session has measured under that name.
        """
        for run in self.runs:
            if run.spec.name == name and run.nodeid != nodeid:
                raise ConfigurationError(describe_shared(name, run.nodeid, nodeid))

    @contextmanager
    def open_run(
        self, item: pytest.Item, spec: ScenarioSpec, *, announce: Callable[[str], None]
    ) -> Iterator[ScenarioRun]:
        """Finds the versions that a test measures; stacks start with the trials.

        Args:
            announce: called with each long step.
        """
        self.refuse_shared(spec.name, item.nodeid)
        stack = self._versions.stack_to_start(spec.stack)
        spec = dataclasses.replace(spec, stack=stack)
        run = ScenarioRun(item.nodeid, spec, self.new_folder(spec.name))
        self.runs.append(run)
        try:
            run.versions = self._versions.find(stack, announce=announce)
            run.find_base = partial(self._versions.find, stack, announce=announce)
            run.announce = announce
            run.version_notes = self._versions.describe(run.versions, stack, item)
            _require_loads(run, run.versions.values())
            yield run
        finally:
            run.end(self._settings.value("traces"))


def _require_loads(run: ScenarioRun, versions: Iterable[Version]) -> None:
    """Checks the loads' programs in the environments of the versions that were found or built."""
    run.environments = [each.installation.environment for each in versions]
    require_loads(run.spec.loads, run.spec, run.environments)


class SessionParts(NamedTuple):
    """The state of a session that its outputs and sweeps read and update."""

    settings: Settings
    record: RunRecord
    ledger: Ledger
