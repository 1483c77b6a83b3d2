"""From trials to a verdict: finds the baseline, decides, records a new one where asked."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from pytest_ldos.campaign.decision import beside_measured_base
from pytest_ldos.campaign.drift import find_drift
from pytest_ldos.campaign.interleave import Interleaved, describe_turns
from pytest_ldos.campaign.order import Role
from pytest_ldos.judge.baseline.calibration_store import Calibrated, CalibrationLookup, find_calibration
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.judge.baseline.lookup import Found, NoBaseline, NotComparable, Unreadable, find_baseline
from pytest_ldos.judge.baseline.store import BaselineStores
from pytest_ldos.judge.gate.absent import judge_without_baseline
from pytest_ldos.judge.gate.calibrated import doubted, with_calibration
from pytest_ldos.judge.gate.decide import GateResult, judge_alone
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.gate.reasons import Reason
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.trial.artifacts import BLOCKS, is_worth_keeping
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.plugin.session import MeasuringSession, ScenarioRun
from pytest_ldos.show.report.compose import Background, compose_section
from pytest_ldos.show.report.document import Section
from pytest_ldos.show.report.reasons import describe_reason
from pytest_ldos.show.report.version_reports import report_drifts

LOCAL_BASELINES = "baselines"


def stores_of(session: MeasuringSession) -> BaselineStores:
    """The repository's and the machine's baselines."""
    return BaselineStores(
        repository=session.config.rootpath / session.value("baselines"), local=session.output / LOCAL_BASELINES
    )


def judge(session: MeasuringSession, run: ScenarioRun, trials: TrialSet) -> tuple[GateResult, Section]:
    """The verdict on trials and what a report says of it."""
    beside = run.beside(trials)
    if beside is not None:
        return _judge_beside_base(session, run, trials, beside)
    stores = stores_of(session)
    lookup = find_baseline(stores, trials)
    known = find_calibration(stores, trials)
    policy = with_calibration(session.policy, known)
    own = judge_alone(trials, policy)
    base = lookup.trials if isinstance(lookup, Found) else None
    background = Background()
    notes = run.take_notes()
    if isinstance(lookup, Found):
        result = doubted(session.family.decide(trials, lookup.trials, policy), known)
        background = Background(base_file=Path(_shown(lookup.file, session)), calibration=_from_root(known, session))
    else:
        result = judge_without_baseline(own, lookup)
    notes += _record(session, stores, trials, own, lookup, reasons=result.reasons)
    is_regressed = result.verdict is Verdict.REGRESSED
    if trials.trace and is_worth_keeping(trials, regressed=is_regressed, policy=session.value("traces")):
        notes.append(f"trace: {run.folder.trace}")
    return result, compose_section(trials, result, base=base, background=background, notes=notes)


def policy_for(session: MeasuringSession, trials: TrialSet) -> Policy:
    """The session's policy, with what is known of this host's noise in the scenario of `trials`."""
    return with_calibration(session.policy, find_calibration(stores_of(session), trials))


def _judge_beside_base(
    session: MeasuringSession, run: ScenarioRun, trials: TrialSet, beside: Interleaved
) -> tuple[GateResult, Section]:
    """The verdict on trials that took turns with those of a base."""
    known = find_calibration(stores_of(session), trials)
    policy = with_calibration(session.policy, known)
    result = beside_measured_base(session.family.decide(trials, beside.base, policy), trials, beside.base, policy)
    result = doubted(result, known)
    notes = [describe_turns(beside), *run.base_notes, *run.take_notes()]
    background = Background(
        base_label=beside.versions[Role.BASE].name,
        calibration=_from_root(known, session),
        drifts=report_drifts(find_drift(trials, beside.base)),
    )
    if session.value("update_baseline"):
        own = judge_alone(trials, session.policy)
        notes += _record(session, stores_of(session), trials, own, NoBaseline(), reasons=result.reasons)
    is_regressed = result.verdict is Verdict.REGRESSED
    sets = (trials, beside.base)
    if any(is_worth_keeping(each, regressed=is_regressed, policy=session.value("traces")) for each in sets):
        notes.append(f"traces: {run.folder.path / BLOCKS}")
    return result, compose_section(trials, result, base=beside.base, background=background, notes=notes)


def _record(
    session: MeasuringSession,
    stores: BaselineStores,
    trials: TrialSet,
    own: GateResult,
    lookup: Found | NoBaseline | NotComparable | Unreadable,
    *,
    reasons: Sequence[Reason],
) -> list[str]:
    """Makes the run a baseline where it was asked to, or where it is the first; says so.

    Args:
        reasons: that are told anyway.
    """
    asked = session.value("update_baseline")
    stands = isinstance(lookup, NotComparable) and lookup.is_ours
    is_first = isinstance(lookup, NoBaseline | NotComparable) and not stands and not session.is_strict
    if not (asked or is_first):
        return []
    if trials.watched:
        return [f"not recorded as a baseline: it was watched by {trials.watched}"]
    if own.verdict is not Verdict.PASSED:
        why = "" if own.reasons[0] in reasons else f": {describe_reason(own.reasons[0])}"
        return [f"not recorded as a baseline{why}"]
    file = stores.update(trials) if asked else stores.save(trials, to_repository=False)
    which = "new baseline" if asked else f"first baseline of this host class ({BaselineKey.of(trials).host_class})"
    return [f"recorded as the {which}: {_shown(file, session)}"]


def _from_root(known: CalibrationLookup, session: MeasuringSession) -> CalibrationLookup:
    """The same, its file as it is shown."""
    if not isinstance(known, Calibrated):
        return known
    return dataclasses.replace(known, file=Path(_shown(known.file, session)))


def _shown(file: Path, session: MeasuringSession) -> str:
    root = session.config.rootpath
    return str(file.relative_to(root)) if file.is_relative_to(root) else str(file)
