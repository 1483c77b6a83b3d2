"""``ldos report RUN``: what a run measured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import typer

from pytest_ldos.campaign.order import Role
from pytest_ldos.cli.output import FormatOption, OutputOption, choose_format, put_out
from pytest_ldos.cli.paths import find_trials, metric_names, sources_here, stores_here
from pytest_ldos.judge.baseline.lookup import Found
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.judging import Grounds, Judged, judge, judge_only
from pytest_ldos.judge.kept import Judgement, read_judgement
from pytest_ldos.measure.trial.artifacts import TRIALS_FILE, ScenarioFolder, read_trials
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.show.report.compose import compose, compose_section, without_verdict
from pytest_ldos.show.report.document import Section

_JUDGED_NOW: Final = "judged now, by what is stored now: the run kept no verdict of its own"


def report(
    run: Annotated[
        str, typer.Argument(help="Run folder, scenario folder or file of trials; 'latest' by default.")
    ] = "latest",
    kind: FormatOption = None,
    output: OutputOption = None,
) -> None:
    """Show what a saved run measured, and repeat its verdict.

    The run keeps its base, its policy and the calibration of the host. Without them, the present ones are used.
    """
    chosen = choose_format(kind, output)
    files = find_trials(run)
    sets = [read_trials(file) for file in files]
    policy = Policy.configured(sources_here().toml.gate, scenarios=len(sets), own=metric_names(sets))
    sections = [_section(file, trials, policy) for file, trials in zip(files, sets, strict=True)]
    put_out(compose(sections), chosen, output)


def _section(file: Path, trials: TrialSet, policy: Policy) -> Section:
    folder = ScenarioFolder(file.parent)
    kept = read_judgement(folder) if file.name == TRIALS_FILE else None
    if kept is not None:
        judged = judge(trials, kept.grounds)
        return compose_section(judged, notes=(*kept.notes, *_describe_difference(kept, judged)))
    base = _interleaved_with(folder, trials)
    if base is not None:
        place, label = folder.base.trials_file, Role.BASE.value
        grounds = Grounds.given(trials, base, place, stores=stores_here(), policy=policy, label=label)
    else:
        grounds = Grounds.stored(trials, stores_here(), policy)
    judged = judge(trials, grounds)
    if isinstance(grounds.base, Found) and grounds.base.trials.trials == trials.trials:
        notes = (f"is the baseline: {grounds.base.file}",)
        return without_verdict(compose_section(judge_only(trials, policy), notes=notes))
    return compose_section(judged, notes=(_JUDGED_NOW,))


def _interleaved_with(folder: ScenarioFolder, head: TrialSet) -> TrialSet | None:
    """The interleaved base of trials; ``None`` if there is none."""
    place = folder.base.trials_file
    if not head.session or not place.exists():
        return None
    base = read_trials(place)
    return base if base.is_interleaved_with(head) else None


def _describe_difference(kept: Judgement, judged: Judged) -> Iterator[str]:
    """A note where this version of pytest-ldos comes to another verdict than the one that judged first."""
    if judged.result.verdict is not kept.verdict:
        yield f"pytest-ldos {kept.made_by} judged these trials as {kept.verdict.word}"
