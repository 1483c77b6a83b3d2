"""``ldos topology``: a declared graph of nodes under observation."""

from __future__ import annotations

import typer

from pytest_ldos.base import exit_codes
from pytest_ldos.cli.instrument_options import takes_settings
from pytest_ldos.cli.say import say
from pytest_ldos.cli.studies import Outputs, run_instrument
from pytest_ldos.instruments.topology.instrument import INSTRUMENT, read_asked
from pytest_ldos.instruments.topology.spec import TopologySpec


@takes_settings(TopologySpec)
def topology(spec: TopologySpec, outputs: Outputs) -> None:
    """Run the nodes of a topology file; find late messages.

    Messages are late above the lesser of 20 % of their period and 5 ms, too late above the lesser of their
    period and 50 ms, lost where a number is passed over.

    Exit code: 0 it was measured, and the target, if there is one, was met; 10 the target was missed; 11 it could
    not be measured whole; 2 a file makes no sense; 130 interrupted.
    """
    read_asked(spec)  # a file that makes no sense is refused before the machine is waited for
    study = run_instrument(INSTRUMENT, spec, outputs)
    if any(each.failure for each in study.rounds):
        raise typer.Exit(exit_codes.INVALID)
    if study.missed:
        say(f"ldos: the target was missed: {', '.join(study.missed)}", err=True)
        raise typer.Exit(exit_codes.REGRESSED)
