"""Judges the trials of a test, stores the grounds of the verdict, and records a new baseline if requested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version

from pytest_ldos.base.errors import LdosError, NotWritten
from pytest_ldos.campaign.blocks import describe_turns
from pytest_ldos.campaign.order import Role
from pytest_ldos.host.checkout import is_changed
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.judge.baseline.known_runs import keep_run
from pytest_ldos.judge.baseline.lookup import Found, Lookup, NoBaseline, NotComparable
from pytest_ldos.judge.gate.decide import GateResult
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.judge.judging import Grounds, Judged, has_other_settings, is_equal_stack, judge
from pytest_ldos.judge.kept import Judgement, write_judgement
from pytest_ldos.measure.trial.artifacts import BLOCKS, is_worth_keeping
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.plugin.ledger import Ledger
from pytest_ldos.plugin.scenario_run import ScenarioRun
from pytest_ldos.plugin.settings import Settings
from pytest_ldos.show.report.compose import compose_section
from pytest_ldos.show.report.document import Section
from pytest_ldos.show.report.reasons import describe_reason


def grounds_for(
    settings: Settings, ledger: Ledger, run: ScenarioRun, trials: TrialSet, base: TrialSet | None = None
) -> Grounds:
    """The grounds of a run: its interleaved base, or the stored baseline."""
    stores, policy = settings.stores, ledger.policy
    if base is None:
        grounds = Grounds.stored(trials, stores, policy).shortened(settings.root)
        screens = (
            isinstance(grounds.base, Found)
            and not run.is_unconfirmed
            and not why_not_confirmed(settings, trials, grounds.base.trials)
        )
        return replace(grounds, policy=replace(grounds.policy, screens=screens))
    file, label = run.folder_of(trials).base.trials_file, run.versions[Role.BASE].name
    grounds = Grounds.given(trials, base, file, stores=stores, policy=policy, label=label).shortened(settings.root)
    return replace(grounds, screen=run.screens.get(trials.session, run.confirming))


def why_not_confirmed(settings: Settings, trials: TrialSet, base: TrialSet) -> str:
    """The reason why a suspicious run is not measured again, interleaved with the baseline's commit; empty if it is."""
    reasons = {
        "--ldos-confirm is 0": not settings.value("confirm"),
        "it becomes the baseline": settings.value("update_baseline"),
        "the baseline names no commit": not base.commit,
        "the baseline was recorded with uncommitted changes; record it again from a commit": is_changed(base.commit),
        "both commits would have this run's settings, which are not the baseline's": has_other_settings(trials, base),
        "exactly the baseline's stack ran": is_equal_stack(trials, base),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def judge_run(settings: Settings, ledger: Ledger, run: ScenarioRun, trials: TrialSet) -> tuple[GateResult, Section]:
    """The verdict on trials and its section of the report."""
    interleaved = run.interleaved_with(trials)
    grounds = grounds_for(settings, ledger, run, trials, None if interleaved is None else interleaved.base)
    judged = judge(trials, grounds)
    facts = [describe_turns(interleaved)] if interleaved is not None else []
    facts += [*run.version_notes, *run.take_notes()]
    notes = [*facts, *_keep(run, trials, grounds, judged, facts)]
    notes += _record(settings, judged, grounds.base)
    notes += _keep_known(settings, judged, grounds)
    notes += _describe_traces(settings, run, judged)
    return judged.result, compose_section(judged, notes=notes)


def _keep_known(settings: Settings, judged: Judged, grounds: Grounds) -> list[str]:
    """Stores known runs; returns a note if they could not be written."""
    try:
        for known in _known_by(judged, grounds):
            keep_run(settings.stores.local, known)
    except LdosError as error:
        return [f"this run is not added to the known runs: {error.message}"]
    return []


def _known_by(judged: Judged, grounds: Grounds) -> list[TrialSet]:
    """Known runs to store: this run, and the base of a refuted suspicion."""
    if judged.own.verdict is not Verdict.PASSED:
        return []
    if grounds.screen is None:
        return [judged.head]
    if judged.base is None or judged.result.verdict not in {Verdict.PASSED, Verdict.IMPROVED}:
        return [grounds.screen.head]
    return [grounds.screen.head, replace(judged.base, session="", looks=(), last_look=None)]


def _keep(run: ScenarioRun, trials: TrialSet, grounds: Grounds, judged: Judged, facts: Sequence[str]) -> list[str]:
    """Stores the grounds of a verdict; returns a note if they could not be written."""
    made_by = version("pytest-ldos")
    judgement = Judgement(grounds=grounds, verdict=judged.result.verdict, made_by=made_by, notes=tuple(facts))
    try:
        write_judgement(run.folder_of(trials), judgement)
    except NotWritten as error:
        return [f"ldos report cannot reproduce this verdict: {error.message}"]
    return []


def _describe_traces(settings: Settings, run: ScenarioRun, judged: Judged) -> list[str]:
    """A note on the location of kept traces."""
    sets = [judged.head, *([judged.base] if judged.base is not None and judged.is_interleaved else [])]
    regressed, policy = judged.result.verdict is Verdict.REGRESSED, settings.value("traces")
    if not any(is_worth_keeping(each, regressed=regressed, policy=policy) for each in sets):
        return []
    folder = run.folder_of(judged.head)
    if len(sets) > 1:
        return [f"traces: {folder.path / BLOCKS}"]
    if not judged.head.trace:
        return []
    more = f"; those of the other starts: {folder.path / BLOCKS}" if (folder.path / BLOCKS).exists() else ""
    return [f"trace: {folder.trace}{more}"]


def _record(settings: Settings, judged: Judged, lookup: Lookup) -> list[str]:
    """Records the run as a baseline if requested, or if it is the first; returns notes on it."""
    trials, own, shown = judged.head, judged.own, judged.result.reasons
    asked = settings.value("update_baseline")
    stands = isinstance(lookup, NotComparable) and lookup.is_ours
    is_first = isinstance(lookup, NoBaseline | NotComparable) and not stands and not settings.is_strict
    if not (asked or is_first):
        return []
    if trials.watched:
        return [f"not recorded as a baseline: it was watched by {trials.watched}"]
    if own.verdict is not Verdict.PASSED:
        why = "" if own.reasons[0] in shown else f": {describe_reason(own.reasons[0])}"
        return [f"not recorded as a baseline{why}"]
    stores = settings.stores
    file = stores.update(trials) if asked else stores.save(trials, to_repository=False)
    which = "new baseline" if asked else f"first baseline of this host class ({BaselineKey.of(trials).host_class})"
    return [f"recorded as the {which}: {settings.short(file)}"]
