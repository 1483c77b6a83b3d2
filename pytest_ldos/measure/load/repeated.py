"""A load that is applied again for each of several stacks, one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from pytest_ldos.base.errors import LoadFailed
from pytest_ldos.measure.load.choose import run_load
from pytest_ldos.measure.load.protocol import LoadProof, LoadSite, RunningLoad
from pytest_ldos.scenario.loads.spec import LoadSpec

RunLoad = Callable[[LoadSpec, LoadSite], AbstractContextManager[RunningLoad]]
"""See `run_load`."""


class RepeatedLoad:
    """See `RunningLoad`: a load that runs wherever it is applied.

    Args:
        spec: the load to apply for each stack.
        run: applies it for one stack.
    """

    def __init__(self, spec: LoadSpec, run: RunLoad = run_load) -> None:
        self.spec = spec
        self._run = run
        self._proofs: list[LoadProof] = []

    @contextmanager
    def beside(self, site: LoadSite) -> Iterator[RunningLoad]:
        """Applies it for as long as the context lasts.

        Raises:
            LoadFailed, Unavailable: it could not be applied.
        """
        with self._run(self.spec, site) as running:
            yield running
        self._proofs.append(running.proof)

    @property
    def proof(self) -> LoadProof:
        """The proof of the place where the least was applied.

        Raises:
            LoadFailed: it has not been applied anywhere yet.
        """
        if not self._proofs:
            raise LoadFailed(
                "there is no proof of this load yet: each version gets it while its trials are made",
                remedy="ask for the proof after ldos_trials(…)",
            )
        return min(self._proofs, key=lambda proof: (not proof.shortfall, proof.applied))
