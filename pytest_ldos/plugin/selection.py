"""The measuring tests of a session, and refusals of tests that would measure badly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_ldos.base.errors import ConfigurationError, LdosError
from pytest_ldos.plugin.instrument_marks import asked_instruments, study_name
from pytest_ldos.plugin.marks import MEASURING_FIXTURE, STUDY_FIXTURE
from pytest_ldos.plugin.scenarios import cell_of, in_cell, is_placeholder
from pytest_ldos.plugin.settings import Settings

if TYPE_CHECKING:
    from pytest_ldos.measure.metrics.catalogue import Catalogue
    from pytest_ldos.measure.metrics.own import OwnMetric
    from pytest_ldos.show.report.document import Place

_WRITTEN_AT_THE_END: Final = ("report", "summary", "benchmark_json")
"""Options for outputs with all scenarios of a session, which workers do not have."""


class Selection:
    """The measuring tests of one session.

    Attributes:
        scenarios: tests that measure a stack.
        studies: tests that measure with an instrument.
        asked: names of the measuring tests selected on the command line.
        is_one_sweep: true if all tests of the session are cells of sweeps.
    """

    def __init__(self) -> None:
        self.scenarios: list[pytest.Item] = []
        self.studies: list[pytest.Item] = []
        self.asked: list[str] = []
        self.is_one_sweep = False

    def take(self, items: Sequence[pytest.Item], asked: Sequence[pytest.Item]) -> None:
        """Records the measuring tests among the collected ones.

        Args:
            asked: those selected on the command line, even if other plugins deselected them.
        """
        self.asked = [item.nodeid for item in asked if not is_placeholder(item)]
        self.scenarios = [item for item in items if MEASURING_FIXTURE in getattr(item, "fixturenames", ())]
        self.studies = [item for item in items if STUDY_FIXTURE in getattr(item, "fixturenames", ())]
        self.is_one_sweep = all(cell_of(item) is not None for item in items)

    def __len__(self) -> int:
        return len(self.scenarios) + len(self.studies)

    def own_names(self) -> set[str]:
        """Names of all metrics and quantities that may be gated in addition to the built-in ones."""
        from pytest_ldos.campaign.instruments import find_instrument

        metrics = {metric.name for item in self.scenarios for metric in own_metrics(item)}
        instruments = {name for item in self.studies for name in asked_instruments(item)}
        return metrics | {each.name for name in instruments for each in find_instrument(name).quantities}

    def place_of(self, nodeid: str) -> Place | None:
        """The file and line of a test, according to pytest."""
        from pytest_ldos.show.report.document import Place

        item = next((item for item in self.scenarios if item.nodeid == nodeid), None)
        if item is None or item.location[1] is None:
            return None
        return Place(file=Path(item.location[0]).as_posix(), line=item.location[1] + 1)


def own_metrics(item: pytest.Item) -> tuple[OwnMetric, ...]:
    """Metrics registered by plugins and a test's conftest.py files, those of outer folders first.

    Raises:
        ConfigurationError: an implementation returned nothing, or something that is not a metric.
    """
    from pytest_ldos.measure.metrics.own import require_own

    hook = item.ihook.pytest_ldos_metrics
    groups = hook()
    given = [each for each in hook.get_hookimpls() if not (each.wrapper or each.hookwrapper)]
    if len(groups) < len(given):  # pytest leaves out implementations that return None
        require_own(None)
    return tuple(metric for group in reversed(groups) for metric in require_own(group))


def metrics_of(item: pytest.Item, settings: Settings) -> Catalogue:
    """All metrics of a test: built-in ones, those in the settings, and those registered for it.

    Raises:
        ConfigurationError: see `own_metrics` and `catalogue_of`.
    """
    from pytest_ldos.measure.metrics.catalogue import built_in_of, catalogue_of

    sources = settings.sources
    return catalogue_of(own_metrics(item), sources.toml.metrics, built_in=built_in_of(sources.stack_spec()))


def shared_baseline(items: Iterable[pytest.Item], settings: Settings) -> str:
    """The reason why two measuring tests with the same baseline are refused; empty if there are none.

    Tests that are always skipped are ignored. A test with wrong marks reports them when it runs.
    """
    first: dict[str, str] = {}
    for item in (each for each in items if not _is_skipped(each)):
        with suppress(LdosError):
            name = measured_name(item, settings)
            if (other := first.setdefault(name, item.nodeid)) != item.nodeid:
                return describe_shared(name, other, item.nodeid)
    return ""


def describe_shared(name: str, one: str, other: str) -> str:
    """The refusal of a test with another test's baseline, with its remedy."""
    return (
        f"{one} and {other} would share the baseline '{name}': the second would be judged by what the first measured"
        f'\n  → give one a name of its own: name="…" in its mark (or in that of its set of parameters: '
        f'pytest.param(…, marks=pytest.mark.baseline(name="left"))), or deselect one'
    )


def measured_name(item: pytest.Item, settings: Settings) -> str:
    """The name under which a test's trials are recorded and judged: from its marks, with the values of its cell.

    The test's own name is not part of it, so that a renamed test keeps its baseline.

    Raises:
        LdosError: its marks are wrong.
    """
    if STUDY_FIXTURE in getattr(item, "fixturenames", ()):
        return study_name(item)
    return in_cell(item, settings.scenario_of(item)).name


def _is_skipped(item: pytest.Item) -> bool:
    """True for a test that is always skipped; conditions as text are unknown before it runs."""
    conditions = ((*mark.args, mark.kwargs.get("condition")) for mark in item.iter_markers("skipif"))
    return any(item.iter_markers("skip")) or any(
        not isinstance(each, str) and bool(each) for those in conditions for each in those
    )


def refuse_head(settings: Settings, what: str) -> None:
    """Refuses ``--ldos-head`` if a test measures programs of this environment instead of a stack.

    Args:
        what: the test's subject, with its verb.

    Raises:
        ConfigurationError: ``--ldos-head`` was given.
    """
    if head := settings.value("head"):
        raise ConfigurationError(
            f"--ldos-head {head}: only a stack is measured of a revision, and {what} of this environment",
            remedy="leave out this test, or measure without --ldos-head in a checkout of the revision",
        )


def refuse_parallel_runs(config: pytest.Config, *, is_one_sweep: bool) -> None:
    """Refuses tests in parallel processes, which disturb each other; only cells of sweeps wait for each other.

    Args:
        is_one_sweep: true if all tests of the session are cells of sweeps.

    Raises:
        ConfigurationError: names the option to leave out.
    """
    worker_input: Any = getattr(config, "workerinput", None)
    if worker_input is None:
        return
    if not is_one_sweep:
        raise ConfigurationError(
            f"scenario tests cannot run in pytest-xdist workers ({worker_input['workercount']} here): other tests "
            "would disturb them",
            remedy="run them alone, with -n 0; only a sweep (ldos_sweep), without other tests, can be spread",
        )
    written = [name for name in _WRITTEN_AT_THE_END if config.getoption(f"ldos_{name}")]
    if written:
        raise ConfigurationError(
            f"--ldos-{written[0].replace('_', '-')} cannot be written by pytest-xdist's workers",
            remedy="leave it out: a sweep's tables are in .ldos/sweeps; or run without workers",
        )
