"""``ldos compare BASE HEAD``: the gate on saved results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.units import counted
from pytest_ldos.cli.output import FormatOption, OutputOption, choose_format, put_out
from pytest_ldos.cli.paths import by_scenario, is_strict, load_run, metric_names, sources_here, stores_here
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.gate.verdict import Verdict, exit_code, worst
from pytest_ldos.judge.judging import Grounds, judge
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.show.report.compose import compose, compose_section
from pytest_ldos.show.report.document import Section

Pair = tuple[TrialSet, TrialSet]
"""Head and base of one scenario."""


def compare(
    base: Annotated[str, typer.Argument(help="Run folder, file of trials or baseline, or 'latest'.")],
    head: Annotated[str, typer.Argument(help="Likewise: what is compared with BASE.")],
    kind: FormatOption = None,
    output: OutputOption = None,
) -> None:
    """Compare two saved results, scenario by scenario.

    They are judged again, with the present settings and calibration; `ldos report` repeats the verdict of a run.

    Exit code: 0 passed, 10 regressed, 11 invalid, 12 inconclusive (in a strict run).
    """
    chosen = choose_format(kind, output)
    bases, heads = by_scenario(load_run(base)), by_scenario(load_run(head))
    common = [name for name in heads if name in bases]
    if not common:
        raise ConfigurationError(
            f"{base} and {head} have no scenario in common",
            remedy=f"the first has {', '.join(bases)}, the second {', '.join(heads)}",
        )
    sections, verdict = compare_sets({name: (heads[name], bases[name]) for name in common}, Path(base))
    put_out(compose(sections), chosen, output)
    raise typer.Exit(exit_code(verdict, strict=is_strict()))


def compare_sets(pairs: Mapping[str, Pair], base: Path) -> tuple[list[Section], Verdict]:
    """Judges saved trials; returns a section for each scenario, and the worst verdict.

    Args:
        pairs: head's and base's, by scenario.
        base: location of the latter.
    """
    own = metric_names(each for pair in pairs.values() for each in pair)
    policy = Policy.configured(sources_here().toml.gate, scenarios=len(pairs), own=own)
    scenarios = counted(len(pairs), "scenario")
    note = f"judged again with the present settings: alpha {policy.alpha:g} divided among {scenarios}"
    stores = stores_here()
    found = [
        judge(head, Grounds.given(head, other, base, stores=stores, policy=policy, label="base"))
        for head, other in pairs.values()
    ]
    sections = [compose_section(each, notes=(note,)) for each in found]
    return sections, worst(each.result.verdict for each in found)
