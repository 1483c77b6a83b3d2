"""The way from trials to a verdict: finds the baseline, decides, and records a new one where asked."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pytest_ldos.campaign.decision import beside_measured_base
from pytest_ldos.campaign.drift import find_drift
from pytest_ldos.campaign.interleave import Interleaved, describe_turns
from pytest_ldos.campaign.order import Role
from pytest_ldos.judge.baseline.calibration_store import Calibrated, CalibrationLookup, find_calibration
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.judge.baseline.lookup import Found, Lookup, NoBaseline, NotComparable, find_baseline, shown_baseline
from pytest_ldos.judge.baseline.store import BaselineStores
from pytest_ldos.judge.gate.absent import judge_without_baseline
from pytest_ldos.judge.gate.calibrated import doubted, with_calibration
from pytest_ldos.judge.gate.decide import GateResult, judge_alone
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.gate.reasons import Reason
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.trial.artifacts import BLOCKS, is_worth_keeping
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.plugin.ledger import Ledger
from pytest_ldos.plugin.scenario_run import ScenarioRun
from pytest_ldos.plugin.settings import Settings
from pytest_ldos.show.report.compose import Background, compose_section
from pytest_ldos.show.report.document import Section
from pytest_ldos.show.report.reasons import describe_reason
from pytest_ldos.show.report.version_reports import report_drifts


def stores_of(settings: Settings) -> BaselineStores:
    """The repository's and the machine's baselines."""
    return settings.stores


def judge(settings: Settings, ledger: Ledger, run: ScenarioRun, trials: TrialSet) -> tuple[GateResult, Section]:
    """The verdict on trials and its section of the report."""
    interleaved = run.interleaved_with(trials)
    if interleaved is not None:
        return _judge_interleaved(settings, ledger, run, trials, interleaved)
    stores = stores_of(settings)
    lookup = find_baseline(stores, trials)
    known = find_calibration(stores, trials)
    policy = with_calibration(ledger.policy, known)
    own = judge_alone(trials, policy)
    shown = shown_baseline(lookup)
    background = Background()
    if shown is not None:
        background = Background(base_file=settings.short(shown.file), calibration=_from_root(known, settings))
    notes = [*run.version_notes, *run.take_notes()]
    if isinstance(lookup, Found):
        result = doubted(ledger.family.decide(trials, lookup.trials, policy), known)
    else:
        result = judge_without_baseline(trials, own, lookup, policy)
    notes += _record(settings, stores, trials, own, lookup, reasons=result.reasons)
    is_regressed = result.verdict is Verdict.REGRESSED
    if trials.trace and is_worth_keeping(trials, regressed=is_regressed, policy=settings.value("traces")):
        others = run.folder.path / BLOCKS
        more = f"; those of the other starts: {others}" if others.exists() else ""
        notes.append(f"trace: {run.folder.trace}{more}")
    base = None if shown is None else shown.trials
    return result, compose_section(trials, result, base=base, background=background, notes=notes)


def policy_for(settings: Settings, ledger: Ledger, trials: TrialSet) -> Policy:
    """The session's policy with the calibration of this host for the scenario of `trials`."""
    return with_calibration(ledger.policy, find_calibration(stores_of(settings), trials))


def _judge_interleaved(
    settings: Settings, ledger: Ledger, run: ScenarioRun, trials: TrialSet, interleaved: Interleaved
) -> tuple[GateResult, Section]:
    """The verdict on trials that were interleaved with those of a base."""
    known = find_calibration(stores_of(settings), trials)
    policy = with_calibration(ledger.policy, known)
    result = beside_measured_base(
        ledger.family.decide(trials, interleaved.base, policy), trials, interleaved.base, policy
    )
    result = doubted(result, known)
    notes = [describe_turns(interleaved), *run.version_notes, *run.take_notes()]
    background = Background(
        base_label=interleaved.versions[Role.BASE].name,
        calibration=_from_root(known, settings),
        drifts=report_drifts(find_drift(trials, interleaved.base)),
    )
    if settings.value("update_baseline"):
        own = judge_alone(trials, ledger.policy)
        notes += _record(settings, stores_of(settings), trials, own, NoBaseline(), reasons=result.reasons)
    is_regressed = result.verdict is Verdict.REGRESSED
    sets = (trials, interleaved.base)
    if any(is_worth_keeping(each, regressed=is_regressed, policy=settings.value("traces")) for each in sets):
        notes.append(f"traces: {run.folder.path / BLOCKS}")
    return result, compose_section(trials, result, base=interleaved.base, background=background, notes=notes)


def _record(
    settings: Settings,
    stores: BaselineStores,
    trials: TrialSet,
    own: GateResult,
    lookup: Lookup,
    *,
    reasons: Sequence[Reason],
) -> list[str]:
    """Records the run as a baseline where asked, or where it is the first; returns notes on it.

    Args:
        reasons: reasons that the report shows anyway.
    """
    asked = settings.value("update_baseline")
    stands = isinstance(lookup, NotComparable) and lookup.is_ours
    is_first = isinstance(lookup, NoBaseline | NotComparable) and not stands and not settings.is_strict
    if not (asked or is_first):
        return []
    if trials.watched:
        return [f"not recorded as a baseline: it was watched by {trials.watched}"]
    if own.verdict is not Verdict.PASSED:
        why = "" if own.reasons[0] in reasons else f": {describe_reason(own.reasons[0])}"
        return [f"not recorded as a baseline{why}"]
    file = stores.update(trials) if asked else stores.save(trials, to_repository=False)
    which = "new baseline" if asked else f"first baseline of this host class ({BaselineKey.of(trials).host_class})"
    return [f"recorded as the {which}: {settings.short(file)}"]


def _from_root(known: CalibrationLookup, settings: Settings) -> CalibrationLookup:
    """The same calibration, with its file as it is shown."""
    if not isinstance(known, Calibrated):
        return known
    return dataclasses.replace(known, file=settings.short(known.file))
