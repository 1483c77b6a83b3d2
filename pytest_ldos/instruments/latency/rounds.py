"""One round of any case, and the interleaved rounds of all cases."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_ldos.instruments.instrument import Progress
from pytest_ldos.instruments.latency import cyclone_pair, rclcpp_pair
from pytest_ldos.instruments.latency.case import Case, Program
from pytest_ldos.instruments.latency.ddsperf_round import measure_ddsperf
from pytest_ldos.instruments.latency.exchange import Exchange, to_exchange
from pytest_ldos.instruments.latency.pair import RoundFailed, run_pair
from pytest_ldos.instruments.latency.site import Site
from pytest_ldos.robot.dds.domain import claim_domain


def measure_all(cases: Sequence[Case], site: Site, progress: Progress) -> Iterator[Exchange]:
    """Measures every case once per block, interleaved, so that drift affects all cases alike.

    The order is reversed in every second block.
    """
    progress.expect(len(cases) * site.spec.rounds)
    for block in range(site.spec.rounds):
        for case in cases if block % 2 == 0 else reversed(cases):
            progress.doing(f"round {block + 1} of {site.spec.rounds}: {case.program}, {case.words}")
            found = measure_round(case, site, block=block)
            if found.failure:
                progress.note(f"{case.program}, {case.words}: {found.failure}")
            progress.step()
            yield found


def measure_round(case: Case, site: Site, *, block: int) -> Exchange:
    """Measures a round with new processes on a domain of their own."""
    with claim_domain() as domain, tempfile.TemporaryDirectory(dir=site.folder) as folder:
        if case.program is Program.DDSPERF:
            return measure_ddsperf(case, site, domain=domain, block=block, folder=Path(folder))
        pair = rclcpp_pair if case.program.rmw else cyclone_pair
        commands = pair.commands_of(case, site, domain=domain, folder=Path(folder))
        try:
            counts = run_pair(commands, Path(folder))
            return to_exchange(case, block, counts, commands.samples)
        except RoundFailed as failed:
            return Exchange(case=case, block=block, failure=str(failed))
