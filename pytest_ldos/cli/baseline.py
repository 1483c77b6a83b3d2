"""``ldos baseline list | show | pin | promote | merge``."""

from __future__ import annotations

from typing import Annotated

import typer

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.text import counted
from pytest_ldos.cli.help import Command, Group
from pytest_ldos.cli.paths import load_run, stores_here, terminal
from pytest_ldos.cli.say import emit, say
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.judge.baseline.store import StoredBaseline, merge_trials
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.judging import judge_only
from pytest_ldos.measure.trial.artifacts import read_trials
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.show.report.baselines import render_baselines
from pytest_ldos.show.report.compose import compose, compose_section, without_verdict
from pytest_ldos.show.report.terminal import render

baseline_app = typer.Typer(
    cls=Group, help="Keep baselines: list, show, pin, promote, merge.", no_args_is_help=True, rich_markup_mode=None
)

Scenario = Annotated[str, typer.Argument(help="Scenario of the baseline, e.g. baseline or msg_load.")]
HostClass = Annotated[str, typer.Option(help="Host class, where several have such a baseline.")]
Pinned = Annotated[bool, typer.Option("--pinned", help="The pinned release instead of the rolling baseline.")]


@baseline_app.command("list", cls=Command)
def list_baselines() -> None:
    """List all baselines, of the repository and of this machine."""
    stored = list(stores_here().all())
    if not stored:
        say("no baselines yet; the first run of a scenario records one: pytest -m baseline")
        return
    width, color = terminal()
    emit(render_baselines(stored, width=width, color=color))


@baseline_app.command(cls=Command)
def show(scenario: Scenario, host_class: HostClass = "", pinned: Pinned = False) -> None:
    """Show the numbers of a baseline."""
    baseline = _find(scenario, host_class, pinned=pinned)
    trials = read_trials(baseline.file)
    section = compose_section(judge_only(trials, Policy()), notes=(f"file: {baseline.file}",))
    width, color = terminal()
    document = compose([without_verdict(section)])
    emit(render(document, width=width, color=color))


@baseline_app.command(cls=Command)
def pin(scenario: Scenario, host_class: HostClass = "") -> None:
    """Pin a baseline as a release, for manual comparisons.

    Later updates of the rolling baseline do not change it.
    """
    say(f"pinned: {stores_here().pin(_find(scenario, host_class, pinned=False))}")


@baseline_app.command(cls=Command)
def promote(scenario: Scenario, host_class: HostClass = "", pinned: Pinned = False) -> None:
    """Copy a baseline of this machine into the repository."""
    say(f"promoted: {stores_here().promote(_find(scenario, host_class, pinned=pinned, local_only=True))}")


@baseline_app.command(cls=Command)
def merge(
    runs: Annotated[
        list[str], typer.Argument(help="Baselines or runs of several machines of one class: files of trials, folders.")
    ],
) -> None:
    """Record one baseline from runs of several machines.

    The machines are of one class; the baseline then includes their variation.

    Runs must be of the same commit, stack, host class and settings; each stack start remains a separate block.
    """
    by_key: dict[BaselineKey, list[TrialSet]] = {}
    for trials in (each for name in runs for each in load_run(name)):
        by_key.setdefault(BaselineKey.of(trials), []).append(trials)
    merged = [merge_trials(sets) for sets in by_key.values()]
    for trials in merged:
        starts = len({each.block for each in trials.trials})
        counts = (
            f"{counted(len(trials.trials), 'trial')} in {counted(starts, 'start')}, from {trials.fingerprint.hostname}"
        )
        say(f"baseline of '{trials.scenario}': {counts}: {stores_here().update(trials)}")


def _find(scenario: str, host_class: str, *, pinned: bool, local_only: bool = False) -> StoredBaseline:
    """The only matching baseline.

    Raises:
        ConfigurationError: there is none, or several host classes have one.
    """
    stored = [each for each in stores_here().all() if each.key.scenario == scenario and each.is_pinned == pinned]
    found = [each for each in stored if host_class in {"", each.key.host_class} and (each.is_local or not local_only)]
    if stored and not found and host_class:
        raise ConfigurationError(
            f"host class {host_class} has no such baseline of '{scenario}'",
            remedy=f"these have: {', '.join(sorted({each.key.host_class for each in stored}))}",
        )
    if not found:
        known = sorted({each.key.scenario for each in stores_here().all()})
        raise ConfigurationError(
            f"there is no {'local ' if local_only else ''}{'pinned ' if pinned else ''}baseline of '{scenario}'",
            remedy=f"there are baselines of: {', '.join(known) or 'nothing yet'}",
        )
    classes = {each.key.host_class for each in found}
    if len(classes) > 1:
        raise ConfigurationError(
            f"several host classes have a baseline of '{scenario}'",
            remedy=f"choose one with --host-class: {', '.join(sorted(classes))}",
        )
    return found[0]
