"""``ldos report RUN``: what a run measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pytest_ldos.campaign.decision import decide_interleaved
from pytest_ldos.campaign.drift import find_drift
from pytest_ldos.campaign.order import Role
from pytest_ldos.cli.output import FormatOption, OutputOption, choose_format, put_out
from pytest_ldos.cli.paths import find_trials, metric_names, sources_here, stores_here
from pytest_ldos.judge.baseline.calibration_store import find_calibration
from pytest_ldos.judge.baseline.lookup import Found, find_baseline, shown_baseline
from pytest_ldos.judge.gate.absent import judge_without_baseline
from pytest_ldos.judge.gate.calibrated import doubted, with_calibration
from pytest_ldos.judge.gate.decide import decide, judge_alone
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.measure.trial.artifacts import ScenarioFolder, read_trials
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.show.report.compose import Background, compose, compose_section, without_verdict
from pytest_ldos.show.report.document import Section
from pytest_ldos.show.report.version_reports import report_drifts


def report(
    run: Annotated[
        str, typer.Argument(help="Run folder, scenario folder or file of trials; 'latest' by default.")
    ] = "latest",
    kind: FormatOption = None,
    output: OutputOption = None,
) -> None:
    """Show what a saved run measured, beside its base.

    That is what it took turns with, or else the present baseline.
    """
    chosen = choose_format(kind, output)
    files = find_trials(run)
    sets = [read_trials(file) for file in files]
    policy = Policy.configured(sources_here().toml.gate, scenarios=len(sets), own=metric_names(sets))
    sections = [_section(file, trials, policy) for file, trials in zip(files, sets, strict=True)]
    put_out(compose(sections), chosen, output)


def _section(file: Path, trials: TrialSet, policy: Policy) -> Section:
    base = _interleaved_with(file, trials)
    return _beside_stored(trials, policy) if base is None else _beside_base(file, trials, base, policy)


def _interleaved_with(file: Path, head: TrialSet) -> TrialSet | None:
    """The base that took turns with the trials of a file, where there was one."""
    place = ScenarioFolder(file.parent).base.trials_file
    if not head.session or not place.exists():
        return None
    base = read_trials(place)
    return base if base.session == head.session else None


def _beside_base(file: Path, head: TrialSet, base: TrialSet, policy: Policy) -> Section:
    known = find_calibration(stores_here(), head)
    result = doubted(decide_interleaved(head, base, with_calibration(policy, known)), known)
    background = Background(
        base_label=Role.BASE.value,
        base_file=ScenarioFolder(file.parent).base.trials_file,
        calibration=known,
        drifts=report_drifts(find_drift(head, base)),
    )
    return compose_section(head, result, base=base, background=background)


def _beside_stored(trials: TrialSet, policy: Policy) -> Section:
    lookup = find_baseline(stores_here(), trials)
    if isinstance(lookup, Found) and lookup.trials.trials == trials.trials:
        notes = (f"is the baseline: {lookup.file}",)
        return without_verdict(compose_section(trials, judge_alone(trials, policy), notes=notes))
    known = find_calibration(stores_here(), trials)
    policy = with_calibration(policy, known)
    if isinstance(lookup, Found):
        result = doubted(decide(trials, lookup.trials, policy), known)
    else:
        result = judge_without_baseline(trials, judge_alone(trials, policy), lookup, policy)
    shown = shown_baseline(lookup)
    if shown is None:
        return compose_section(trials, result)
    background = Background(base_file=shown.file, calibration=known)
    return compose_section(trials, result, base=shown.trials, background=background)
