"""Measurements of each trial outside its trace: use of resources, and what a controller manager says of its loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext

from pytest_ldos.base.stats.moments import Moments
from pytest_ldos.host.process_resources import ResourceMeter
from pytest_ldos.measure.metrics.catalogue import Catalogue
from pytest_ldos.measure.metrics.context import OutsideTrace
from pytest_ldos.measure.metrics.declared import declared_in
from pytest_ldos.measure.metrics.loops import refuse_unknown_loops, since
from pytest_ldos.measure.metrics.resources import refuse_absent, refuse_absent_nodes
from pytest_ldos.measure.trial.measure import nodes_so_far
from pytest_ldos.measure.trial.rig import Rig


class OutsideMeter:
    """Measures the trials on a rig, as far as a metric of the catalogue asks for it.

    Attributes:
        found: what was measured, by goal id.
    """

    def __init__(self, rig: Rig, catalogue: Catalogue) -> None:
        self._rig = rig
        asked = declared_in(catalogue.values())
        self._of_processes = [spec for spec in asked if spec.kind.is_of_process]
        self._of_loops = [spec for spec in asked if spec.kind.is_of_loop]
        self.found: dict[str, OutsideTrace] = {}

    def begin(self, *, is_under_test: bool) -> None:
        """Prepares for trials of the warm stack, and refuses metrics of what it does not have.

        Args:
            is_under_test: False for a version that need not have each process, node and control loop.

        Raises:
            ConfigurationError: names them, and what there is.
            Unavailable, BringUpFailed: the controller manager cannot be asked.
        """
        loops = self._loops() or {}
        if not is_under_test:
            return
        refuse_unknown_loops(self._of_loops, loops)
        if self._of_processes:
            refuse_absent(self._of_processes, list(self._rig.stack.processes().values()))
        if any(spec.node for spec in self._of_processes):
            refuse_absent_nodes(self._of_processes, nodes_so_far(self._rig))

    @contextmanager
    def measured(self, goal_id: str) -> Iterator[None]:
        """Measures a trial, which lasts as long as the context."""
        stack = self._rig.stack
        before = self._loops()
        meter = ResourceMeter(stack.processes, stack.all_processes) if self._of_processes else None
        with meter or nullcontext():
            yield
            used = None if meter is None else meter.measure()
        loops = None if before is None else since(self._loops() or {}, before)
        self.found[goal_id] = OutsideTrace(resources=used, loops=loops)

    def _loops(self) -> Mapping[str, Moments] | None:
        """Statistics of the control loops so far; ``None`` if no metric asks for them."""
        return self._rig.stack.loop_statistics() if self._of_loops else None
