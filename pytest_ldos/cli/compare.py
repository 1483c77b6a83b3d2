"""``ldos compare BASE HEAD``: the gate on saved results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.cli.output import FormatOption, OutputOption, choose_format, put_out
from pytest_ldos.cli.paths import by_scenario, is_strict, load_run, metric_names, sources_here, stores_here
from pytest_ldos.judge.baseline.calibration_store import CalibrationLookup, find_calibration
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.judge.gate.calibrated import doubted, with_calibration
from pytest_ldos.judge.gate.decide import GateResult, Pair, decide_run, not_comparable
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.gate.reasons import OtherHost
from pytest_ldos.judge.gate.verdict import Verdict, exit_code, worst
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.show.report.compose import Background, compose, compose_section
from pytest_ldos.show.report.document import Section


def compare(
    base: Annotated[str, typer.Argument(help="Run folder, file of trials or baseline, or 'latest'.")],
    head: Annotated[str, typer.Argument(help="Likewise: what is compared with BASE.")],
    kind: FormatOption = None,
    output: OutputOption = None,
) -> None:
    """Compare two saved results, scenario by scenario.

    Exit code: 0 passed, 10 regressed, 11 invalid, 12 undecided (in a strict run).
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
        base: where the latter come from.
    """
    policy = Policy.configured(
        sources_here().toml.gate,
        scenarios=len(pairs),
        own=metric_names(each for head_and_base in pairs.values() for each in head_and_base),
    )
    known = {name: find_calibration(stores_here(), head) for name, (head, _) in pairs.items()}
    results = _decide(pairs, policy, known)
    sections = [_section(*pairs[name], results[name], known[name], base) for name in pairs]
    return sections, worst(result.verdict for result in results.values())


def _section(head: TrialSet, base: TrialSet, result: GateResult, known: CalibrationLookup, file: Path) -> Section:
    background = Background(base_label="base", base_file=file, calibration=known)
    return compose_section(head, result, base=base, background=background)


def _decide(pairs: Mapping[str, Pair], policy: Policy, known: Mapping[str, CalibrationLookup]) -> dict[str, GateResult]:
    """The verdict on each scenario; those of one host class share the probability of a false alarm."""
    foreign = {name: reason for name, pair in pairs.items() if (reason := _find_other_host(*pair)) is not None}
    compared = {name: pair for name, pair in pairs.items() if name not in foreign}
    for lookup in known.values():
        policy = with_calibration(policy, lookup)
    judged = dict(zip(compared, decide_run([*compared.values()], policy), strict=True))
    return {
        name: doubted(judged[name], known[name]) if name in judged else not_comparable(*pairs[name], foreign[name])
        for name in pairs
    }


def _find_other_host(head: TrialSet, base: TrialSet) -> OtherHost | None:
    ours, theirs = BaselineKey.of(head), BaselineKey.of(base)
    return None if ours.place == theirs.place else OtherHost(ours, theirs)
