"""Verdicts on trials with known noise and planted effects."""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
import re
from statistics import median
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.series import Invalid, Missing
from pytest_ldos.judge.baseline.key import Calibration, MetricNoise
from pytest_ldos.judge.gate import reasons as why
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.decide import decide, judge_alone
from pytest_ldos.judge.gate.reasons import VERDICT_OF, Moved, Reason, Unusable
from pytest_ldos.judge.gate.verdict import Verdict, exit_code, is_failure, worst
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.model import Measurement, published_states
from pytest_ldos.measure.trial.record import Look, to_series
from pytest_ldos.show.report.reasons import describe_reason
from tests.builders.calibrations import calibration_of
from tests.builders.trials import (
    FINGERPRINT,
    TYPICAL,
    failed_trial,
    measured,
    noisy_set,
    taken_from,
    trial,
    trial_set,
    with_metric,
)

POLICY = Policy()


UNKNOWN = {"stack_kind": "of nobody"}
"""A kind of stack that the record of unchanged runs does not have."""


def compare(head, base, policy=POLICY):
    return decide(head, base, policy)


def replace_values(trials, name, value):
    changed = tuple(
        dataclasses.replace(each, measurements={**each.measurements, name: Measurement(value)})
        for each in trials.trials
    )
    return dataclasses.replace(trials, trials=changed)


# --- metrics --------------------------------------------------------------------------


def test_equal_versions_pass():
    verdicts = [compare(noisy_set(2 * seed), noisy_set(2 * seed + 1)).verdict for seed in range(40)]
    assert verdicts.count(Verdict.PASSED) >= 38
    assert Verdict.REGRESSED not in verdicts


def on_a_cpu(trials, *, slowness, seed):
    """Trials whose planning took as much longer as the CPU was slow, by a spread of 25 % in each trial."""
    rng = random.Random(seed)
    changed = []
    for each in trials.trials:
        factor = slowness * rng.lognormvariate(0, 0.25)
        planning = Measurement(each.measurements["T1"].number * factor)
        changed.append(
            dataclasses.replace(
                each,
                measurements={**each.measurements, "T1": planning},
                cpu_work_ns=round(1_300_000 * factor * rng.lognormvariate(0, 0.03)),
            )
        )
    return dataclasses.replace(trials, trials=tuple(changed))


def test_floor_is_a_relevant_effect_for_any_spread():
    """Enough trials detect 19 % although single ones vary by 20 %."""
    noise = {"T1": 0.2}
    head = noisy_set(1, n=200, cv=noise, factors={"T1": 1.19}, session="one", **UNKNOWN)
    base = noisy_set(2, n=200, cv=noise, session="one", **UNKNOWN)
    found = compare(head, base).comparison("T1")
    assert found.verdict is Verdict.REGRESSED
    assert found.floor == 0.05
    assert compare(head, base, Policy(floors={"T1": 0.25})).comparison("T1").verdict is Verdict.PASSED


def test_floor_is_the_spread_if_run_variation_is_unknown():
    noise = {"T1": 0.2}
    unknown, known = (
        compare(*(noisy_set(seed, n=50, cv=noise, stack_kind=kind) for seed in (1, 2))).comparison("T1")
        for kind in ("of nobody", "embedded")
    )
    assert unknown.floor == pytest.approx(0.22, abs=0.05)
    assert known.floor == 0.05


def test_slow_cpu_is_not_a_slow_planner():
    """The duration of fixed work on the planner's CPU is removed from T1 as a covariate."""
    for seed in range(20):
        base = on_a_cpu(noisy_set(2 * seed), slowness=1.0, seed=2 * seed)
        same = on_a_cpu(noisy_set(2 * seed + 1), slowness=1.4, seed=2 * seed + 1)
        slower = on_a_cpu(noisy_set(2 * seed + 1, factors={"T1": 1.8}), slowness=0.9, seed=2 * seed + 1)
        found = compare(same, base).comparison("T1")
        assert found.verdict is not Verdict.REGRESSED
        assert found.explained > 0.5
        assert compare(slower, base).comparison("T1").verdict is Verdict.REGRESSED


@pytest.mark.parametrize("metric", ["T1", "T2x", "T3", "T5"])
def test_worse_metric_is_named(metric):
    result = compare(
        *(noisy_set(seed, factors=made, session="one", **UNKNOWN) for seed, made in ((1, {metric: 1.5}), (2, {})))
    )
    assert result.verdict is Verdict.REGRESSED
    assert [each.metric for each in result.comparisons if each.verdict is Verdict.REGRESSED] == [metric]
    comparison = result.comparison(metric)
    assert 1.3 < comparison.ratio < 1.7
    assert comparison.low > 1
    assert comparison.low < comparison.ratio < comparison.high
    assert result.reasons[0].comparison.metric == metric


def test_improved_metric_is_not_a_failure():
    result = compare(noisy_set(1, factors={"T1": 0.7}), noisy_set(2))
    assert result.verdict is Verdict.IMPROVED
    assert not is_failure(result.verdict, strict=True)


def test_effect_below_the_floor_is_never_reported():
    head = noisy_set(1, n=30, factors={"T1": 1.048}, cv=0.002, session="one", **UNKNOWN)
    base = noisy_set(2, n=30, cv=0.002, session="one", **UNKNOWN)
    result = compare(head, base)
    assert result.comparison("T1").low > 1
    assert result.comparison("T1").verdict is Verdict.PASSED
    assert compare(head, base, Policy(floors={"T1": 0.01})).comparison("T1").verdict is Verdict.REGRESSED


def test_metric_hidden_by_noise_is_neither_judged_nor_passed():
    result = compare(noisy_set(1, cv={"T1": 0.8}), noisy_set(2, cv={"T1": 0.8}))
    assert result.comparison("T1").verdict is Verdict.NOT_JUDGED
    assert result.comparison("T1").mde > METRICS["T1"].largest_tolerable_mde
    assert result.comparison("T4").verdict is Verdict.PASSED
    assert result.verdict is Verdict.PASSED
    assert isinstance(result.reasons[0], why.NotJudged)
    assert result.reasons[0].comparison.metric == "T1"
    assert math.isfinite(result.reasons[0].comparison.mde)


def test_required_metric_that_cannot_be_judged_is_inconclusive():
    noisy = [noisy_set(seed, cv={"T1": 0.8, "T3": 3.0}) for seed in (1, 2)]
    result = compare(*noisy, Policy(required=("T1",)))
    assert [result.comparison(name).verdict for name in ("T1", "T3")] == [Verdict.INCONCLUSIVE, Verdict.NOT_JUDGED]
    assert result.verdict is Verdict.INCONCLUSIVE
    assert isinstance(result.reasons[0], why.NotClear)
    assert result.reasons[0].comparison.metric == "T1"


def test_unmeasured_required_metric_is_inconclusive():
    result = compare(noisy_set(1), noisy_set(2), Policy(required=("T1", "T5p99")))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert why.RequiredMetric("T5p99") in result.reasons


def test_a_run_in_which_nothing_could_be_judged_is_not_green():
    noise = dict.fromkeys(TYPICAL, 5.0)
    only = ("T1", "T2x", "T3")
    result = compare(*(with_only(only, noisy_set(seed, cv=noise)) for seed in (1, 2)))
    assert {each.verdict for each in result.comparisons} == {Verdict.NOT_JUDGED}
    assert result.verdict is Verdict.INCONCLUSIVE


def with_only(names, trials):
    changed = tuple(
        dataclasses.replace(each, measurements={name: each.measurements[name] for name in names})
        for each in trials.trials
    )
    return dataclasses.replace(trials, trials=changed)


def test_certain_regression_of_unjudged_metric_is_reported():
    """The MDE is tenfold, and a hundredfold change is reported."""
    head, base = noisy_set(1, n=20, cv={"T3": 0.9}, factors={"T3": 100.0}), noisy_set(2, n=20, cv={"T3": 0.9})
    same = compare(noisy_set(3, n=20, cv={"T3": 0.9}), base).comparison("T3")
    assert same.mde > METRICS["T3"].largest_tolerable_mde
    assert same.verdict is Verdict.NOT_JUDGED
    assert compare(head, base).verdict is Verdict.REGRESSED


def test_variation_between_runs_cannot_be_offset_by_trials():
    """More trials give no evidence of other times: the advice is to interleave."""
    sets = [noisy_set(seed, n=20, cv={"T1": 0.5}) for seed in (1, 2)]
    reasons = compare(*sets, Policy(floors={"T1": 0.05})).reasons
    assert "T1" in {reason.comparison.metric for reason in reasons}
    assert {reason.trials for reason in reasons} == {0}


def test_suggested_number_of_trials_is_enough():
    """The number of trials in the reason reaches the limit; half as many do not."""

    def reason_for(count):
        policy = Policy(floors={"T1": 0.05})
        one, other = (noisy_set(seed, n=count, cv={"T1": 0.5}, session="interleaved", **UNKNOWN) for seed in (7, 8))
        result = compare(one, other, policy)
        return result.comparison("T1"), result.reasons

    found, (reason,) = reason_for(20)
    assert found.verdict is Verdict.NOT_JUDGED
    assert reason_for(round(1.2 * reason.trials))[0].verdict is Verdict.PASSED
    assert reason_for(reason.trials // 2)[0].verdict is Verdict.NOT_JUDGED


@pytest.mark.parametrize(("trial_sd", "expected"), [(0.04, Verdict.INCONCLUSIVE), (0.5, Verdict.NOT_JUDGED)])
def test_disturbed_run_of_a_suitable_host_is_inconclusive(trial_sd, expected):
    """The calibration, not this run alone, says what the host can judge."""
    known = MetricNoise(trial_sd=trial_sd, start_sd=0.01, start_df=9, run_sd=0.01, run_df=9, floor=0.05)
    policy = Policy(calibrations={"baseline": calibration_of({"T1": known})})
    result = compare(noisy_set(1, cv={"T1": 0.8}), noisy_set(2, cv={"T1": 0.8}), policy)
    assert result.comparison("T1").verdict is expected
    usual = [each.usual for each in result.reasons[:1] if isinstance(each, why.NotClear)]
    assert any(map(math.isfinite, usual)) == (expected is Verdict.INCONCLUSIVE)


def test_one_trial_on_each_side_decides_nothing():
    result = compare(noisy_set(1, n=1), noisy_set(2, n=1))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert all(math.isinf(each.mde) for each in result.comparisons)
    assert isinstance(result.reasons[0], why.TooFewInBaseline)
    assert result.reasons[0].required == 8


def test_stored_base_with_too_few_trials_must_be_recorded_again():
    base = noisy_set(2, n=3)
    result = compare(may_have(noisy_set(1, n=12), 30), base)
    assert isinstance(result.reasons[0], why.TooFewInBaseline)
    assert (result.reasons[0].head_count, result.reasons[0].base_count) == (12, 3)
    assert result.base_needs > 3
    assert result.more_trials_because == ()
    enough = compare(noisy_set(1, n=result.base_needs), noisy_set(2, n=result.base_needs))
    assert not any(math.isinf(each.mde) for each in enough.comparisons)


def may_have(trials, most):
    return dataclasses.replace(trials, spec=dataclasses.replace(trials.spec, max_trials=most))


def test_few_trials_of_the_base_suffice_with_many_of_head():
    result = compare(may_have(noisy_set(1, n=4), 100), noisy_set(2, n=5))
    assert result.base_needs == 0
    assert result.more_trials_because
    assert isinstance(result.reasons[0], why.TooFewTrials)
    assert result.reasons[0].required


def test_interleaved_base_is_never_recorded_again():
    head, base = (dataclasses.replace(noisy_set(seed, n=2), session="one") for seed in (1, 2))
    result = compare(head, base)
    assert (result.verdict, result.base_needs) == (Verdict.INCONCLUSIVE, 0)
    assert not any(isinstance(each, why.TooFewInBaseline) for each in result.reasons)


def test_too_few_trials_of_head_are_not_attributed_to_the_base():
    result = compare(noisy_set(1, n=2), noisy_set(2, n=20))
    assert result.base_needs == 0
    assert isinstance(result.reasons[0], why.TooFewTrials)
    assert result.reasons[0].required


def test_identical_values_pass():
    same = trial_set([trial(index, dict.fromkeys(METRICS, 5.0), block=index // 2) for index in range(10)])
    assert compare(same, same).verdict is Verdict.PASSED


def planned(seed, *, factor=1.0, spread=0.2):
    """Trials whose planner drew plans of different length; everything else takes 30 and 50 ms."""
    rng = np.random.default_rng(seed)
    changed = []
    for each in noisy_set(seed, n=20).trials:
        duration_ms = 1900 * factor * rng.lognormal(0, spread)
        t2, t4 = (duration_ms + offset + rng.normal(0, 2) for offset in (30, 50))
        values = {**each.measurements, "T2": measured("T2", t2), "T4": measured("T4", t4)}
        changed.append(dataclasses.replace(each, measurements=values, plan_duration_ns=round(duration_ms * 1e6)))
    return trial_set(changed, session="one")


def test_planning_time_variation_is_removed_from_t2_and_t4():
    """Plans differ by a fifth between trials; almost none of that variance remains."""
    for seed in range(20):
        result = compare(planned(2 * seed), planned(2 * seed + 1))
        for name in ("T2", "T4"):
            found = result.comparison(name)
            assert found.explained > 0.99
            assert found.location in {Verdict.PASSED, Verdict.SHOWN}
            assert found.ratio == pytest.approx(1.0, abs=0.01)
            assert found.mde < 0.1


def test_metric_with_a_steadier_companion_is_only_shown():
    result = compare(noisy_set(1), noisy_set(2))
    assert result.comparison("T2").verdict is Verdict.SHOWN
    assert result.verdict is Verdict.PASSED
    assert "T2" not in {
        each.comparison.metric for each in result.reasons if isinstance(each, why.NotJudged | why.Moved)
    }


def test_shown_only_metric_regresses_if_certain():
    """Longer plans are in T2 and T4, and a faster planner may hide them in T4."""
    result = compare(noisy_set(1, factors={"T2": 1.5}), noisy_set(2))
    assert result.comparison("T2").verdict is Verdict.REGRESSED
    assert result.verdict is Verdict.REGRESSED


def test_stalls_visible_only_in_t3_regress():
    """One late period of a thousand moves neither the mean period nor its 90th percentile."""

    def with_loop(seed, factor):
        trials = noisy_set(seed, factors={"T3": factor})
        for name, typical, cv in (("T3mean", 2.0, 0.001), ("T3p90", 0.05, 0.05)):
            trials = with_metric(trials, name, typical=typical, cv=cv, seed=seed)
        return trials

    assert compare(with_loop(1, 1.0), with_loop(2, 1.0)).comparison("T3").verdict is Verdict.SHOWN
    assert compare(with_loop(1, 13.0), with_loop(2, 1.0)).comparison("T3").verdict is Verdict.REGRESSED


def test_metric_is_only_shown_if_its_companions_are_judged():
    head, base = noisy_set(1, cv={"T2x": 3.0}), noisy_set(2, cv={"T2x": 3.0})
    result = compare(head, base)
    assert result.comparison("T2x").verdict is Verdict.NOT_JUDGED
    assert result.comparison("T2").verdict is Verdict.PASSED


def test_longer_plans_are_a_regression_of_the_planner():
    """Every plan of head is longer, which is not chance; T4 regresses by its own value."""
    result = compare(planned(1, factor=1.3, spread=0.02), planned(2, spread=0.02))
    found = result.comparison("T4")
    assert found.verdict is Verdict.REGRESSED
    assert found.unlike == ("planned_duration_ms",)
    assert found.ratio == pytest.approx(1.3, abs=0.03)


def test_more_scenarios_in_a_run_require_more_evidence():
    head, base = noisy_set(1), noisy_set(2)
    one, four = compare(head, base).comparison("T1"), compare(head, base, Policy(scenarios=4)).comparison("T1")
    assert four.tail == pytest.approx(one.tail / 4)
    assert four.mde > one.mde


def test_values_of_zero_are_compared_by_differences():
    def shifted(seed, offset):
        return trial_set([trial(index, {"T2x": offset + 0.1 * ((index * seed) % 7)}) for index in range(12)])

    assert compare(shifted(3, -0.2), shifted(5, -0.2)).comparison("T2x").verdict is not Verdict.REGRESSED
    assert compare(shifted(3, 5.0), shifted(5, -0.2)).comparison("T2x").verdict is Verdict.REGRESSED


def test_change_below_zero_is_not_a_percentage():
    def latencies(seed, offset):
        rng = np.random.default_rng(seed)
        return trial_set([trial(index, {"T2x": offset + rng.normal(0, 0.3)}) for index in range(12)])

    result = compare(latencies(1, -0.2), latencies(2, 30.0))
    assert result.comparison("T2x").verdict is Verdict.IMPROVED
    assert not result.comparison("T2x").has_ratio
    assert isinstance(result.reasons[0], why.Moved)
    assert re.fullmatch(
        r"T2x \(execution beyond the plan\) improved: from 30\.\d ms to -0\.\d+ ms", describe_reason(result.reasons[0])
    )


@pytest.mark.parametrize("session", ["", "one"])
def test_no_more_trials_are_requested_than_needed(session):
    """Six of ten failed on both sides: more than the seven that T1 needs were made."""

    def failing(seed):
        made = noisy_set(seed, failures=6, session=session)
        return dataclasses.replace(made, spec=dataclasses.replace(made.spec, success_rate=0.0))

    few = [each for each in compare(failing(1), failing(2)).reasons if isinstance(each, why.TooFewComparable)]
    (of_t1,) = (each for each in few if "T1" in each.metrics)
    assert (of_t1.head_count, of_t1.base_count, of_t1.because) == (10, 10, Unusable.FAILED)


def test_failed_trials_add_no_unrequested_latency():
    """A stack without planning-only requests has no T1mean, also not from its failed trials."""
    head = with_metric(noisy_set(1, n=30), "T1mean", typical=10.0, cv=0.05)
    assert "T1mean" not in {each.metric for each in compare(head, noisy_set(2, n=30, failures=2)).comparisons}


def test_baseline_with_fewer_metrics_is_usable():
    head = with_metric(noisy_set(1, n=30), "T1mean", typical=10.0, cv=0.05)
    result = compare(head, noisy_set(2, n=30))
    assert result.verdict is Verdict.PASSED
    assert why.NewMetric("T1mean") in result.reasons


def scattering(seed, **noise):
    """Trials whose T1 cannot be judged, with a steadier T1mean."""
    made = noisy_set(seed, n=30, cv={"T1": 0.8, "T3": 0.05, "T5": 0.05, "T2x": 0.05}, session="one", **UNKNOWN)
    return with_metric(made, "T1mean", typical=10.0, seed=seed, **noise)


def test_metric_with_a_judged_companion_requests_no_trials():
    result = compare(scattering(1, cv=0.05), scattering(2, cv=0.05))
    assert result.comparison("T1").verdict is Verdict.SHOWN
    assert result.comparison("T1mean").verdict is Verdict.PASSED
    assert result.reasons == ()
    assert result.more_trials_because == ()


def test_noisy_metric_and_companion_are_both_named():
    result = compare(scattering(1, cv=0.8), scattering(2, cv=0.8))
    assert {each.metric for each in result.comparisons if each.verdict is Verdict.NOT_JUDGED} == {"T1", "T1mean"}
    named = {each.comparison.metric for each in result.reasons if isinstance(each, why.NotJudged)}
    assert named >= {"T1", "T1mean"}
    assert result.more_trials_because


def test_unpaired_trials_are_too_few_to_compare():
    """Each version has ten trials, four of them of the goal that both have."""

    def with_goals(seed, own):
        trials = [dataclasses.replace(each, goal="near" if each.index < 4 else own) for each in noisy_set(seed).trials]
        return trial_set(trials)

    reasons = compare(with_goals(1, "far"), with_goals(2, "left")).reasons
    (few,) = (each for each in reasons if isinstance(each, why.TooFewComparable))
    assert few.because is Unusable.UNPAIRED


def test_trials_of_unknown_noise_are_too_few_to_compare():
    known = MetricNoise(trial_sd=0.05, start_sd=0.0, start_df=9, run_sd=400.0, run_df=9, floor=0.05)
    policy = Policy(calibrations={"baseline": calibration_of({"T1": known})})
    sides = (noisy_set(seed) for seed in (1, 2))
    (few,) = (each for each in compare(*sides, policy).reasons if isinstance(each, why.TooFewComparable))
    assert few == why.TooFewComparable(("T1",), 10, 10, Unusable.UNKNOWN_NOISE)


def test_too_few_values_of_one_metric_are_counted_by_themselves():
    """T3 has two values and T1 ten: only T3 is reported to need more."""
    sets = [noisy_set(seed, session="one") for seed in (1, 2)]
    few = [
        dataclasses.replace(
            each,
            trials=tuple(
                dataclasses.replace(
                    one, measurements={n: m for n, m in one.measurements.items() if n != "T3" or one.index < 2}
                )
                for one in each.trials
            ),
        )
        for each in sets
    ]
    (reason,) = compare(*few).reasons
    assert (reason.metrics, reason.head_count, reason.base_count) == (("T3",), 2, 2)


def test_most_severe_reason_comes_first():
    """Regressions by size, then inconclusive metrics, then improvements."""
    factors = {"T2x": 0.5, "T3": 1.4, "T5": 3.0}
    head, base = (noisy_set(seed, factors=made, cv={"T1": 0.8}, **UNKNOWN) for seed, made in ((1, factors), (2, {})))
    result = compare(head, base, Policy(required=("T1",)))
    found = [(type(each), each.comparison.metric) for each in result.reasons]
    assert found == [(why.Moved, "T5"), (why.Moved, "T3"), (why.NotClear, "T1"), (why.Moved, "T2x")]


def test_every_kind_of_reason_has_a_severity():
    assert {*VERDICT_OF, Moved} == {*get_args(Reason)}


# --- failures -------------------------------------------------------------------------


def test_failures_come_before_latencies():
    """Most trials fail fast: worse, although the others are quicker."""
    head = noisy_set(1, failures=6, factors={"T1": 0.9, "T4": 0.9})
    head = dataclasses.replace(head, spec=dataclasses.replace(head.spec, success_rate=0.3))
    result = compare(head, noisy_set(2))
    assert result.verdict is Verdict.REGRESSED
    assert isinstance(result.reasons[0], why.FailuresRose)
    assert (result.reasons[0].base_failures, result.reasons[0].head_failures) == (0, 6)
    assert all(each.verdict is not Verdict.IMPROVED for each in result.comparisons if each.metric in {"T1", "T4"})


def test_all_trials_failed():
    result = compare(noisy_set(1, failures=10), noisy_set(2))
    assert result.verdict is Verdict.REGRESSED
    assert result.comparison("T4").ratio == math.inf


def test_an_expectation_is_checked_without_a_baseline():
    result = judge_alone(noisy_set(1, failures=1), POLICY)
    assert result.verdict is Verdict.REGRESSED
    assert result.reasons[0] == why.MissedSuccessRate(9, 10, 1.0)
    assert isinstance(result.reasons[1], why.TrialsFailed)
    assert (result.reasons[1].outcome, result.reasons[1].code) == ("planning_failed", -31)


def test_a_lower_expectation_allows_what_chance_explains():
    def with_rate(rate, failures):
        trials = noisy_set(1, failures=failures)
        return judge_alone(
            dataclasses.replace(trials, spec=dataclasses.replace(trials.spec, success_rate=rate)), POLICY
        ).verdict

    assert with_rate(0.9, 2) is Verdict.PASSED
    assert with_rate(0.9, 6) is Verdict.REGRESSED


# --- measurement ----------------------------------------------------------------------


def test_untrustworthy_trials_make_the_run_invalid():
    result = compare(replace_values(noisy_set(1), "T3", Invalid("51 events lost")), noisy_set(2))
    assert result.verdict is Verdict.INVALID
    assert result.reasons[0] == why.Untrusted("T3", 10, 10, result.reasons[0].first)
    assert "51 events lost" in result.reasons[0].first


def test_a_few_untrustworthy_trials_are_left_out():
    base = noisy_set(1, n=20)
    head = dataclasses.replace(
        base,
        trials=(dataclasses.replace(base.trials[0], measurements={"T1": Measurement(Invalid("x"))}), *base.trials[1:]),
    )
    result = compare(head, noisy_set(2, n=20))
    assert result.verdict is Verdict.PASSED
    assert result.comparison("T1").head_count == 19


def test_a_load_that_was_not_reached_makes_the_run_invalid():
    shortfall = {"kind": "dds_flood", "shortfall": "the flood reached 2000 of 4000 msg/s", "summary": ""}
    result = compare(noisy_set(1, loads=(shortfall,)), noisy_set(2))
    assert result.verdict is Verdict.INVALID
    assert isinstance(result.reasons[0], why.LoadNotReached)
    assert "2000 of 4000" in result.reasons[0].shortfall


def test_no_trials_are_never_green():
    result = judge_alone(trial_set([], incomplete="the stack died"), POLICY)
    assert result.verdict is Verdict.INVALID
    assert result.reasons[0] == why.NoTrials("the stack died")


def test_trials_that_could_not_be_finished_are_invalid():
    assert judge_alone(noisy_set(1, incomplete="the arm could not return home"), POLICY).verdict is Verdict.INVALID


def test_missing_metric_is_named():
    result = compare(replace_values(noisy_set(1), "T3", Missing("no control cycles")), noisy_set(2))
    assert result.comparison("T3") is None
    assert why.LostMetric("T3", "no control cycles") in result.reasons
    assert result.verdict is Verdict.INCONCLUSIVE


def test_metric_of_the_run_only_lacks_a_baseline():
    result = compare(noisy_set(1), replace_values(noisy_set(2), "T3", Missing("no control cycles")))
    assert result.comparison("T3") is None
    assert why.NewMetric("T3") in result.reasons
    assert result.verdict is Verdict.NO_BASELINE


def of_goal(trials, goal, *, first=0):
    moved = (dataclasses.replace(each, goal=goal, index=first + each.index) for each in trials.trials)
    return dataclasses.replace(trials, trials=tuple(moved))


def test_a_goal_of_one_side_only_is_named_and_decides_nothing():
    both = noisy_set(1)
    shelf = of_goal(noisy_set(3, factors={"T1": 5.0}), "shelf", first=10)
    head = dataclasses.replace(both, trials=(*both.trials, *shelf.trials))
    result = compare(head, noisy_set(2))
    assert why.NewGoal("shelf") in result.reasons
    assert result.verdict is Verdict.INCONCLUSIVE
    assert why.LostGoal("shelf") in compare(noisy_set(2), head).reasons


@pytest.mark.parametrize("failures", [17, 20])
def test_mostly_failing_versions_do_not_pass(failures):
    """Head's few successful trials take ten times as long; without any, nothing is known."""

    def mostly_failing(seed, **changes):
        trials = noisy_set(seed, n=20, failures=failures, **changes)
        return dataclasses.replace(trials, spec=dataclasses.replace(trials.spec, success_rate=0.0))

    result = compare(mostly_failing(1, factors={"T1": 10.0, "T4": 10.0}), mostly_failing(2))
    assert result.comparison("T1").verdict is not Verdict.PASSED
    assert result.verdict is not Verdict.PASSED


def test_looks_at_another_base_do_not_count():
    """Looked at with 30 trials, compared with 25 later: one failure is not a rise."""
    looks = tuple(Look(head, 30) for head in (10, 15, 20))
    head = noisy_set(1, n=20, failures=1, looks=looks, last_look=Look(30, 30))
    head = dataclasses.replace(head, spec=dataclasses.replace(head.spec, success_rate=0.5))
    assert compare(head, noisy_set(2, n=25)).verdict is not Verdict.REGRESSED


def test_expectation_is_tested_within_its_error_budget():
    """The same share of successes that is a miss at the only look is none at the second of many."""

    def missed(**changes):
        trials = noisy_set(1, n=20, failures=8, **changes)
        spec = dataclasses.replace(trials.spec, success_rate=0.9)
        return judge_alone(dataclasses.replace(trials, spec=spec), POLICY).verdict

    assert missed() is Verdict.REGRESSED
    looks = (Look(10, 10), Look(20, 20))
    assert missed(looks=looks, last_look=Look(100, 100)) is Verdict.PASSED


def test_trial_without_duration_does_not_remove_the_noise():
    """Runs of this host differ by 30 %; one value of zero, for which ratios are none, changes nothing of that."""
    noise = MetricNoise(trial_sd=0.05, start_sd=0.3, start_df=9, run_sd=0.3, run_df=9, floor=0.05)
    calibration = Calibration(
        scenario="baseline",
        stack_kind="embedded",
        fingerprint=FINGERPRINT,
        made_at="2026-01-01T00:00:00+00:00",
        commit="",
        starts=10,
        trials=100,
        metrics={"T2x": noise},
    )
    policy = Policy(calibrations={"baseline": calibration})
    head, base = noisy_set(1, n=20, factors={"T2x": 1.25}), noisy_set(2, n=20)
    first = head.trials[0]
    still = dataclasses.replace(first, measurements={**first.measurements, "T2x": measured("T2x", 0.0)})
    for trials in (head, dataclasses.replace(head, trials=(still, *head.trials[1:]))):
        assert compare(trials, base, policy).comparison("T2x").verdict is not Verdict.REGRESSED


def test_no_common_metrics_is_no_verdict():
    other_goals = trial_set([dataclasses.replace(each, goal="other") for each in noisy_set(1).trials])
    result = compare(other_goals, noisy_set(2))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert why.OtherGoals(("other",), ("reach",)) in result.reasons


# --- the order of verdicts, and exit codes ----------------------------------------------


def test_the_worst_verdict_counts():
    assert worst([Verdict.PASSED, Verdict.INCONCLUSIVE, Verdict.REGRESSED, Verdict.INVALID]) is Verdict.REGRESSED
    assert worst([Verdict.IMPROVED, Verdict.PASSED]) is Verdict.IMPROVED
    assert worst([]) is Verdict.PASSED


@pytest.mark.parametrize(
    ("verdict", "relaxed", "strict"),
    [
        (Verdict.PASSED, 0, 0),
        (Verdict.IMPROVED, 0, 0),
        (Verdict.REGRESSED, exit_codes.REGRESSED, exit_codes.REGRESSED),
        (Verdict.INVALID, exit_codes.INVALID, exit_codes.INVALID),
        (Verdict.INFRA, exit_codes.INVALID, exit_codes.INVALID),
        (Verdict.INCONCLUSIVE, 0, exit_codes.INCONCLUSIVE),
        (Verdict.NO_BASELINE, 0, exit_codes.INCONCLUSIVE),
        (Verdict.NOT_COMPARABLE, 0, exit_codes.INCONCLUSIVE),
    ],
)
def test_exit_codes(verdict, relaxed, strict):
    assert exit_code(verdict, strict=False) == relaxed
    assert exit_code(verdict, strict=True) == strict


@pytest.mark.parametrize(
    "arguments",
    [
        {"alpha": 0},
        {"alpha": 0.9},
        {"floors": {"T1": -0.1}},
        {"floors": {"T1": math.nan}},
        {"relevant_effect": math.inf},
    ],
)
def test_invalid_policies_are_refused(arguments):
    with pytest.raises(ConfigurationError):
        Policy(**arguments)


# --- properties -----------------------------------------------------------------------


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000), order=st.randoms(use_true_random=False))
def test_the_order_of_trials_does_not_matter(seed, order):
    head, base = noisy_set(seed, factors={"T1": 1.2}), noisy_set(seed + 1)
    shuffled = list(head.trials)
    order.shuffle(shuffled)
    one, other = compare(dataclasses.replace(head, trials=tuple(shuffled)), base), compare(head, base)
    sentences = [list(map(describe_reason, each.reasons)) for each in (one, other)]
    assert (one.verdict, sentences[0]) == (other.verdict, sentences[1])
    for mine, yours in zip(one.comparisons, other.comparisons, strict=True):
        assert (mine.ratio, mine.low, mine.high) == pytest.approx((yours.ratio, yours.low, yours.high), rel=1e-9)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000), factors=st.lists(st.floats(0.5, 3.0), min_size=2, max_size=4))
def test_larger_shift_is_never_better(seed, factors):
    """The same trials, scaled: p-values fall and ratios rise with the factor."""
    base = noisy_set(seed + 1)
    results = [compare(noisy_set(seed, factors={"T1": factor}), base).comparison("T1") for factor in sorted(factors)]
    for smaller, larger in itertools.pairwise(results):
        assert larger.ratio >= smaller.ratio * 0.999999
        assert larger.p_value <= smaller.p_value + 1e-12


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000), failures=st.integers(0, 10))
def test_failures_are_never_an_improvement(seed, failures):
    base = noisy_set(seed + 1)
    healthy, failing = compare(noisy_set(seed), base), compare(noisy_set(seed, failures=failures), base)
    for name in ("T1", "T2", "T2x", "T4"):
        assert failing.comparison(name).ratio >= healthy.comparison(name).ratio * 0.97


def test_medians_cover_successful_trials():
    head = noisy_set(1, failures=3)
    comparison = compare(head, noisy_set(2)).comparison("T1")
    assert comparison.head_median == pytest.approx(median(to_series(head, METRICS["T1"]).finite))


def test_a_single_failed_trial_is_counted():
    base = noisy_set(2)
    head = dataclasses.replace(base, trials=(*base.trials[:-1], failed_trial(9)))
    assert compare(head, base).comparison("T4").head_count == 10


# --- sources --------------------------------------------------------------------------

STATES = published_states("/joint_states")


@pytest.mark.parametrize("worse", [1.0, 3.0])
def test_numbers_of_different_sources_are_not_compared(worse):
    """The same loop looks half as irregular again by its publisher: that is no regression, nor is hiding one a pass."""
    head = taken_from(noisy_set(1, factors={"T3": worse}), "T3", STATES)
    result = compare(head, noisy_set(2))
    assert result.comparison("T3") is None
    assert result.verdict is Verdict.NOT_COMPARABLE
    reason = why.OtherSources("T3", ("/joint_states publications",), ("control probe",))
    assert result.incomparable == {"T3": reason}
    assert reason in result.reasons
    assert {each.metric for each in result.comparisons} == set(TYPICAL) - {"T3"}
    assert not is_failure(result.verdict, strict=False)
    assert is_failure(result.verdict, strict=True)


def test_another_metric_still_regresses():
    head = taken_from(noisy_set(1, factors={"T1": 1.6}), "T3", STATES)
    result = compare(head, noisy_set(2))
    assert result.verdict is Verdict.REGRESSED
    assert result.comparison("T1").verdict is Verdict.REGRESSED


def test_numbers_of_one_approximate_source_are_compared():
    head = taken_from(noisy_set(1, factors={"T3": 3.0}, **UNKNOWN), "T3", STATES)
    base = taken_from(noisy_set(2, **UNKNOWN), "T3", STATES)
    assert compare(head, base).comparison("T3").verdict is Verdict.REGRESSED
    assert compare(base, base).verdict is Verdict.PASSED


def test_a_source_that_changes_within_a_run_makes_it_incomparable():
    mixed = taken_from(noisy_set(1), "T3", STATES, only=3)
    for head, base in ((mixed, noisy_set(2)), (noisy_set(2), mixed), (mixed, mixed)):
        result = compare(head, base)
        assert result.verdict is Verdict.NOT_COMPARABLE
        found = result.incomparable["T3"]
        assert ("/joint_states publications", "control probe") in (found.here, found.there)


def test_a_metric_that_one_side_lost_is_absent_not_incomparable():
    lost = replace_values(noisy_set(1), "T3", Missing("no probe"))
    result = compare(lost, noisy_set(2))
    assert result.incomparable == {}
    assert why.LostMetric("T3", "no probe") in result.reasons


def test_runs_that_have_no_source_in_common_are_not_comparable():
    head = noisy_set(1)
    for name in TYPICAL:
        head = taken_from(head, name, STATES)
    result = compare(head, noisy_set(2))
    assert result.verdict is Verdict.NOT_COMPARABLE
    assert result.comparisons == ()
    assert set(result.incomparable) == set(TYPICAL)
