"""Reports for people: complete, aligned, and safe to print."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from pytest_ldos.base.series import Better, Missing
from pytest_ldos.base.text import percent, visible
from pytest_ldos.host.interference import Interference
from pytest_ldos.judge.baseline.key import BaselineKey, Calibration, MetricNoise, OtherHostClasses
from pytest_ldos.judge.baseline.store import Calibrated, Uncalibrated
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.decide import decide
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.metrics.extract import Kept
from pytest_ldos.measure.metrics.model import FEEDBACK, Measurement, published_states
from pytest_ldos.measure.metrics.on_cpus import Placed
from pytest_ldos.measure.trial.record import Look
from pytest_ldos.scenario.metrics import DeadlineSpec
from pytest_ldos.scenario.model import FaultSpec, StackSpec
from pytest_ldos.scenario.words import StackKind, StimulusKind
from pytest_ldos.show.page.formats import Format
from pytest_ldos.show.report import html, markdown
from pytest_ldos.show.report.compose import compose
from pytest_ldos.show.report.json_text import render_as
from pytest_ldos.show.report.sentences import APPROXIMATELY
from pytest_ldos.show.report.terminal import render, render_failure
from pytest_ldos.show.report.words import (
    change_of,
    describe_mdes,
    describe_measurement,
    describe_sources,
    interval_of,
    mde_of,
    median_of,
    shown_metrics,
    summarize,
)
from tests.builders.calibrations import calibration_of
from tests.builders.own_metric import GRIP_RATE, with_own
from tests.builders.reports import HOSTILE as HOSTILE_WORDS
from tests.builders.reports import full_document, in_words, section_of
from tests.builders.trials import FINGERPRINT, noisy_set, taken_from, trial, trial_set
from tests.unit.judge.gate.test_decide import on_a_cpu, replace_values


def metric_of(section, name):
    return next(each for each in section.metrics if each.name == name)


HOSTILE = "\x1b[31mred\x07 [bold]x[/bold] \u202egnp.exe"


def text_of(section, width=120):
    return render(compose([section]), width=width, color=False, setting=False)


def failure_of(section):
    return render_failure(compose([section]))


def test_regression_is_shown_with_everything_needed_to_act():
    """Metric, both medians, ratio with interval, floor, MDE, and the trace."""
    head, base = noisy_set(1, factors={"T1": 1.4}), noisy_set(2)
    section = section_of(head, base, notes=("trace: /somewhere/trace",))
    message = failure_of(section)
    t1 = metric_of(section, "T1")
    assert t1 is not None
    assert t1.change is not None
    change = t1.change
    medians = median_of(t1, t1.head), median_of(t1, t1.base)
    numbers = change_of(change), interval_of(change), percent(change.floor), mde_of(change)
    for part in (*medians, *numbers, "/somewhere/trace"):
        assert part != "–"
        assert part in message
    assert message.startswith("scenario 'baseline': regressed; 10 of 10 trials succeeded")
    assert "T2 execution latency" not in message


def on_running_nodes(trials):
    stack = StackSpec(kind=StackKind.RUNNING, stimulus=StimulusKind.WINDOW)
    return dataclasses.replace(trials, spec=dataclasses.replace(trials.spec, stack=stack))


@pytest.mark.parametrize("kind", Format)
@pytest.mark.parametrize(
    ("required", "running", "other"),
    [
        ((), "ldos calibrate", "measure interleaved to reach it"),
        (("T1",), "--ldos-max-trials", "measure both versions interleaved"),
    ],
)
def test_interleaving_is_proposed_except_for_running_nodes(kind, required, running, other):
    """Metric that is not judged, or an inconclusive run; the variation between runs is unknown."""
    trials = [noisy_set(seed, cv={"T1": 0.8}) for seed in (1, 2)]

    def rendered(head, base):
        policy, calibration = Policy(required=required), Uncalibrated()
        section = section_of(head, base, policy=policy, calibration=calibration)
        return " ".join(render_as(compose([section]), kind, width=200).split())

    shown = rendered(*map(on_running_nodes, trials))
    assert "--ldos-base" not in shown
    assert running in shown
    assert other in rendered(*trials)
    assert "--ldos-base" in rendered(*trials)


def test_adjusted_spread_is_shown():
    alone = section_of(on_a_cpu(noisy_set(1), slowness=1.0, seed=1))
    t1, t3 = (metric_of(alone, name).head for name in ("T1", "T3"))
    assert t1.adjusted_cv < 0.5 * t1.cv
    assert t3.adjusted_cv is None
    assert "adjusted" in text_of(alone)
    assert "adjusted" not in text_of(section_of(noisy_set(1)))


def test_a_metric_that_regressed_by_failures_has_its_numbers():
    """Censored values leave an interval open above; what it says below is shown."""
    section = section_of(noisy_set(1, n=20, failures=15), noisy_set(2, n=20))
    t1 = metric_of(section, "T1")
    assert t1.verdict == "regressed"
    assert t1.change.high is None
    assert interval_of(t1.change).endswith("+∞")
    assert "T1 planning latency: regressed" in failure_of(section)


def test_large_upper_end_is_shown_as_approximate():
    change = metric_of(section_of(noisy_set(1), noisy_set(2)), "T1").change
    shown = interval_of(dataclasses.replace(change, low=0.2, high=4141.75))
    assert shown == "-80.0 % … > 1000 %"


def test_differing_settings_are_named():
    head = noisy_set(1)
    delayed = dataclasses.replace(head.spec, stack=StackSpec(faults=FaultSpec(planning_delay_ms=6)))
    notes = list(describe_measurement(section_of(dataclasses.replace(head, spec=delayed), noisy_set(2))))
    assert "settings differ from the baseline's: faults.planning_delay_ms 0.0 → 6" in notes


def test_the_interval_stays_at_80_columns():
    text = text_of(section_of(noisy_set(1, factors={"T1": 1.4}), noisy_set(2)), 80)
    assert "interval" in text
    assert " … " in text


@pytest.mark.parametrize("width", [80, 100, 160])
def test_tables_fit_the_width(width):
    alike = {"session": "one", "stack_kind": "of nobody"}
    section = section_of(noisy_set(1, factors={"T1": 1.4}, **alike), noisy_set(2, **alike))
    lines = [line for line in text_of(section, width).splitlines() if line.startswith("  T")]
    assert all(len(line) <= width for line in lines)
    assert any("T1" in line and "regressed" in line for line in lines)
    assert all(name in "\n".join(lines) for name in ("T1", "T2", "T2x", "T3", "T4", "T5"))


def test_a_run_without_a_baseline_shows_its_own_numbers():
    text = text_of(section_of(noisy_set(1)))
    assert "T1" in text
    assert "CV" in text
    assert "baseline " not in text.splitlines()[2]


def test_missing_values_are_explained():
    section = section_of(replace_values(noisy_set(1), "T3", Missing("no control cycles in the window")))
    assert "no control cycles in the window" in text_of(section)


def test_all_failed_is_shown_as_such():
    text = text_of(section_of(noisy_set(1, failures=10)))
    assert "0 of 10 trials succeeded" in text
    assert "no trial succeeded" in text


def test_score_names_missing_metrics():
    head = replace_values(noisy_set(1), "T5", Missing("no simulator steps"))
    assert "without T5" in text_of(section_of(head, noisy_set(2)))


def test_the_score_is_the_weighted_geometric_mean():
    def constant(factor):
        values = {"T1": 10.0 * factor, "T2": 100.0, "T2x": 5.0, "T3": 1.0, "T4": 50.0, "T5": 1.0}
        return trial_set([trial(index, values) for index in range(10)])

    text = text_of(section_of(constant(2.0), constant(1.0)))
    assert f"overall score: {2 ** (1.0 / 4.3):.3f} × baseline" in text


RETRIES = dataclasses.replace(
    GRIP_RATE, name="retries", title="retries of the gripper", unit="", better=Better.LOWER, score_weight=1.0
)


def counted(seed, retries, **changes):
    return with_own(noisy_set(seed), metric=dataclasses.replace(RETRIES, **changes), value=retries)


def at_times(seed, often):
    """Nine in some of five trials; in others there are none."""
    plain = counted(seed, 0.0)
    trials = [
        dataclasses.replace(each, measurements={**each.measurements, "retries": Measurement(9.0)})
        if each.index % 5 < often
        else each
        for each in plain.trials
    ]
    return dataclasses.replace(plain, trials=tuple(trials))


def test_a_change_from_zero_has_no_ratio():
    """There is no ratio, but the value is shown."""
    section = section_of(counted(1, 5.0), counted(2, 0.0))
    metric = metric_of(section, "retries")
    assert metric.verdict is Verdict.REGRESSED
    assert metric.change.is_from_zero
    assert metric.change.ratio is metric.change.low is metric.change.high is metric.change.mde is None
    assert "retries (retries of the gripper) regressed: from 0 to 5.00" in section.reasons
    assert "retries retries of the gripper from 0, 0.00 → 5.00" in markdown.render(compose([section]))
    assert "change         from 0, interval –" in failure_of(section)
    assert "retries" in section.score.without
    assert not [line for line in describe_mdes(section) if "retries" in line]


def test_inconclusive_change_from_zero_has_no_ratio():
    section = section_of(counted(1, 0.0), counted(2, 0.0))
    assert metric_of(section, "retries").verdict is Verdict.PASSED
    section = section_of(at_times(1, often=3), at_times(2, often=1))
    assert metric_of(section, "retries").verdict is Verdict.INCONCLUSIVE
    assert "retries is inconclusive (measured from 0 to 9.00)" in section.reasons
    assert "change         from 0, interval –" in failure_of(section)


UNJUDGED = {"T3": 3.0}


def test_unjudged_metrics_are_shown_with_the_verdict_in_every_format():
    section = section_of(*(noisy_set(seed, cv=UNJUDGED, session="one") for seed in (1, 2)))
    unjudged = f"not judged here: T3 ({change_of(metric_of(section, 'T3').change)})"
    first, reason, *_ = text_of(section).splitlines()
    assert first == f"baseline: passed; 10 of 10 trials succeeded; {unjudged}"
    assert "T3 is not judged here: its MDE is" in reason
    assert summarize(section) == f"nothing moved; {unjudged}"
    document = compose([section])
    assert metric_of(section, "T3").verdict == "not_judged"
    assert "nothing moved; not judged here: T3" in markdown.render(document)
    assert unjudged in html.render(document)
    assert "not_judged" in text_of(section)


def test_exhausted_remedy_is_not_suggested():
    """Interleaving is advised first, then more trials, then a calibration, then a quieter machine."""

    def advice_of(most=0, session="", lookup=None):
        noise = dict.fromkeys(("T1", "T2x", "T3", "T4", "T5"), 3.0)
        sets = [noisy_set(seed, cv=noise, session=session) for seed in (1, 2)]
        head, base = (dataclasses.replace(each, spec=dataclasses.replace(each.spec, max_trials=most)) for each in sets)
        result = decide(head, base, Policy(required=("T1",)))
        assert result.verdict is Verdict.INCONCLUSIVE
        return section_of(head, base, result=result, calibration=lookup).advice

    assert "--ldos-base" in advice_of()[0]
    assert "--ldos-max-trials" in advice_of(session="one")[0]
    assert "ldos calibrate" in advice_of(most=10, session="one")[0]
    assert "ldos doctor" in advice_of(most=10, session="one", lookup=Calibrated(calibration_of({}), Path("x")))[0]


def test_a_pass_does_not_hide_a_median_three_times_as_high():
    """Base tried the slow goal seldom: goal by goal nothing changed, and the median of all values trebled."""

    def with_goals(seed, slow):
        rng = np.random.default_rng(seed)
        return trial_set(
            [
                trial(
                    index,
                    {"T1": rng.normal(30.0 if index < slow else 10.0, 0.2)},
                    goal="far" if index < slow else "near",
                )
                for index in range(20)
            ]
        )

    section = section_of(with_goals(1, 14), with_goals(2, 6))
    assert metric_of(section, "T1").verdict is Verdict.PASSED
    first, *_ = text_of(section).splitlines()
    assert first == "baseline: passed; 20 of 20 trials succeeded; T1 passed with a median 3 times as high"
    (row,) = (line for line in text_of(section, 160).splitlines() if line.startswith("  T1 "))
    assert row.endswith("passed, a median 3 times as high")
    document = compose([section])
    for text in (markdown.render(document), html.render(document)):
        assert "passed, a median 3 times as high" in text
        assert "nothing moved; T1 passed with a median 3 times as high" in text


def test_a_change_below_zero_is_shown_without_a_ratio():
    head, base = (trial_set([trial(i, {"T2x": at + 0.1 * (i % 4)}) for i in range(12)]) for at in (-0.4, 30.0))
    section = section_of(head, base)
    change = metric_of(section, "T2x").change
    assert (change.ratio, change.low, change.high, change.is_below_zero) == (None, None, None, True)
    assert "below 0" in text_of(section)
    assert summarize(section) == "T2x below 0"


def test_differences_of_the_environment_are_shown():
    upgraded = noisy_set(1, fingerprint=dataclasses.replace(FINGERPRINT, versions={"mujoco": "3.9"}))
    assert "mujoco 3.2 → 3.9" in text_of(section_of(upgraded, noisy_set(2)))


STORED = {"microcode": "0x1", "parameter move_group range": "0.5", "RMW_X": "1"}
NOW = {"microcode": "0x2", "parameter move_group range": "0.1", "kernel option nosmt": "set"}
CHANGED = "RMW_X 1 → unset, kernel option nosmt unset → set, microcode 0x1 → 0x2, parameter move_group range 0.5 → 0.1"


@pytest.mark.parametrize(
    ("session", "beginning"),
    [("", "between these runs, the environment changed"), ("1", "environment differs")],
    ids=["stored", "interleaved"],
)
def test_changed_environment_is_listed(session, beginning):
    head, base = (noisy_set(seed, session=session, environment=each) for seed, each in ((1, NOW), (2, STORED)))
    assert f"{beginning}: {CHANGED}\n" in render(compose([section_of(head, base)]), width=300, color=False)


def test_records_without_an_environment_differ_in_none():
    """Those of earlier versions."""
    for here, there in (({}, STORED), (STORED, {})):
        section = section_of(noisy_set(1, environment=here), noisy_set(2, environment=there))
        assert section.differences == ()


def test_many_differences_are_counted():
    many = {f"parameter node {number:02}": "0.1" for number in range(14)}
    text = text_of(section_of(noisy_set(1, environment=many), noisy_set(2, environment={"microcode": "0x1"})))
    assert "parameter node 08 unset → 0.1 and 5 more" in " ".join(text.split())


def test_planted_faults_are_shown_as_a_difference():
    head = noisy_set(1)
    faults = dataclasses.replace(head.spec.stack.faults, planning_delay_ms=5.0)
    spec = dataclasses.replace(head.spec, stack=dataclasses.replace(head.spec.stack, faults=faults))
    assert "settings differ" in text_of(section_of(dataclasses.replace(head, spec=spec), noisy_set(2)))


def test_text_of_other_programs_cannot_reach_the_terminal():
    assert visible(HOSTILE) == "\\x1b[31mred\\x07 [bold]x[/bold] \\x202egnp.exe"
    head = noisy_set(1, name="evil\x1b]0;x\x07", failures=1, incomplete=HOSTILE, stack=HOSTILE)
    section = section_of(head, notes=(HOSTILE,))
    shown = render(compose([section]), width=100, color=False) + failure_of(section)
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "\u202e" not in shown
    assert "[bold]x[/bold]" in shown


def test_colour_only_if_requested():
    section = section_of(noisy_set(1, factors={"T1": 1.4}), noisy_set(2))
    assert "\x1b[" in render(compose([section]), width=100, color=True)
    assert "\x1b[" not in text_of(section)


STATES = published_states("/joint_states")


def approximately(seed, **options):
    return taken_from(noisy_set(seed, stack_kind="of nobody", **options), "T3", STATES)


def test_markers_and_probes_need_no_note():
    section = section_of(noisy_set(1), noisy_set(2))
    assert describe_sources(section) == ()
    assert APPROXIMATELY not in text_of(section)


def test_approximate_number_is_marked_and_explained_below_the_table():
    section = section_of(approximately(1), approximately(2))
    lines = text_of(section).splitlines()
    (row,) = [line for line in lines if line.startswith("  T3 ")]
    assert row.count("≈ 0.0") == 2
    (why,) = [line for line in lines if line.startswith("  ≈ T3")]
    assert why == f"  ≈ T3 from /joint_states publications: {STATES.caveat}"
    assert lines.index(why) > max(number for number, line in enumerate(lines) if line.startswith("  T5"))
    assert all("≈" not in line for line in lines if line not in (row, why))


def test_failure_marks_a_regression_of_an_approximate_number():
    message = failure_of(section_of(approximately(1, factors={"T3": 3.0}), approximately(2)))
    assert "T3 control-loop jitter: regressed" in message
    assert "median         ≈ 0." in message
    assert f"≈ T3 from /joint_states publications: {STATES.caveat}" in message


def test_other_exact_sources_are_named_without_a_sign():
    section = section_of(taken_from(noisy_set(1), "T1", FEEDBACK))
    assert describe_sources(section) == ("T1 from feedback publications",)
    assert APPROXIMATELY not in text_of(section)


def test_a_metric_of_two_sources_is_shown_as_not_comparable():
    section = section_of(approximately(1), noisy_set(2))
    t3 = metric_of(section, "T3")
    assert t3.verdict == "not_comparable"
    assert t3.base is None
    assert "not_comparable" in text_of(section)
    reason = "T3 is not comparable: it was taken from /joint_states publications here, from control probe in the base (record it again: --ldos-update-baseline)"
    assert f"  {reason}" in text_of(section).splitlines()
    assert "T3 control-loop jitter: not_comparable" not in failure_of(section)


def test_topic_names_are_escaped():
    section = section_of(taken_from(noisy_set(1), "T3", published_states(f"/{HOSTILE}")))
    assert "\x1b" not in text_of(section)
    assert "\\x1b[31mred" in text_of(section)


@pytest.mark.parametrize("text", HOSTILE_WORDS)
def test_hostile_text_does_not_change_terminal_lines(text):
    """As many lines as with a harmless word, no control character, and no command to the log of a workflow."""
    hostile, harmless = in_words(full_document(), text), in_words(full_document(), "name" if text else "")
    for show in (lambda document: render(document, width=100, color=False), render_failure):
        shown = show(hostile)
        shown.encode()
        assert shown.count("\n") == show(harmless).count("\n")
        assert not [line for line in shown.splitlines() if line.lstrip().startswith("::") or "##[" in line]
        assert not set("\x00\x07\x1b\x85\u2028\u202e\u2066\u200f") & set(shown)


def test_everything_done_is_reported():
    text = render(full_document(), width=160, color=False)
    for part in (
        "→ look first at transport",
        "order of the 4 stack starts: base head head base",
        "10 trials were added, 20 of at most 30 in all",
        "calibration: x (12 starts, 60 trials, 2026-01-01)",
        "drift over 4 blocks: T1 +1.0 % (p = 0.4), T3 +20.0 % (p = 0.001)",
        "the machine drifted during the session: T3 +20.0 % (p = 0.001)",
        "main~1: baselines/baseline.json (commit 0123456789ab, 10 trials, 2026-01-01T00:00:00+00:00)",
        "cpu_load: infra; nothing measured",
        "a user's own",
    ):
        assert part in text


def test_changed_metrics_come_first_and_shown_only_ones_last():
    section = section_of(noisy_set(1, factors={"T4": 1.5, "T2x": 0.5}), noisy_set(2))
    assert [each.name for each in shown_metrics(section) if each.change] == ["T4", "T2x", "T1", "T3", "T5", "T2"]


def test_details_are_described_on_request():
    document = full_document()
    brief, whole = (render(document, width=160, color=False, details=details) for details in (False, True))
    assert {*brief.splitlines()} < {*whole.splitlines()}
    more = " ".join(line for line in whole.splitlines() if line not in brief.splitlines())
    assert all(part in more for part in ("order of the 4 stack starts", "10 trials were added", "drift over 4 blocks"))


def test_advice_names_the_segment_that_gained_the_time():
    section = section_of(noisy_set(1, factors={"T1": 1.4}), noisy_set(2))
    assert section.advice == (
        "if the change is intended, accept it (ldos accept), or record it: run again with --ldos-update-baseline",
    )
    assert section_of(noisy_set(1), noisy_set(2)).advice == ()
    (failed,) = section_of(noisy_set(1, failures=5)).advice
    assert failed.startswith("see how trials failed")


def test_advice_names_changed_parameters_first():
    changed = section_of(noisy_set(1, factors={"T1": 1.4}, environment=NOW), noisy_set(2, environment=STORED))
    assert changed.advice[0] == "look first at parameter move_group range: 0.5 → 0.1"
    assert section_of(noisy_set(1, environment=NOW), noisy_set(2, environment=STORED)).advice == ()


def test_blocks_and_added_trials_come_from_the_records():
    def of(seed, blocks, **changes):
        plain = noisy_set(seed, n=4, session="one", **changes)
        trials = tuple(dataclasses.replace(each, block=blocks[each.index // 2]) for each in plain.trials)
        return dataclasses.replace(plain, trials=trials)

    head = of(1, (1, 2), looks=(Look(2, 2), Look(4, 4)), last_look=Look(8, 8))
    section = section_of(head, of(2, (0, 3)))
    assert section.interleaving.order == ("base", "head", "head", "base")
    assert (section.additions.added, section.additions.limit.head) == (2, 8)
    assert section_of(head, dataclasses.replace(of(2, (0, 3)), session="another")).interleaving is None


def test_interrupted_extension_counts_completed_trials():
    plain = noisy_set(1, n=13, incomplete="the arm could not return home", looks=(Look(8, 8),), last_look=Look(16, 16))
    head = dataclasses.replace(plain, spec=dataclasses.replace(plain.spec, trials=8))
    reported = text_of(section_of(head, noisy_set(2)))
    assert "no more trials could be added" in reported
    assert reported.count("the arm could not return home") == 1
    assert "5 trials were added, 13 of at most 16 in all; 1 look at: 8 against 8" in reported


def test_calibration_is_reported():
    noise = MetricNoise(trial_sd=0.1, start_sd=0.0, start_df=1, run_sd=0.0, run_df=1, floor=0.05)
    calibration = Calibration(
        scenario="baseline", stack_kind="embedded", fingerprint=FINGERPRINT, made_at="2026-01-01", commit="abc",
        starts=6, trials=60, metrics={"T1": noise},
    )  # fmt: skip
    known = Calibrated(calibration, Path("baseline.calibration.json"))
    head = noisy_set(1)
    reported = text_of(section_of(head, calibration=known))
    assert "calibration: baseline.calibration.json (6 starts, 60 trials, 2026-01-01)" in reported
    other = Uncalibrated(OtherHostClasses(BaselineKey.of(head), ("another",)))
    assert "there is a calibration of host class another" in text_of(section_of(head, calibration=other))


def test_failures_are_grouped_by_kind():
    head = section_of(noisy_set(1, failures=3)).head
    (failed,) = head.failures
    assert (failed.trials, failed.code, failed.outcome) == ((1, 2, 3), -31, "planning_failed")


def test_deadlines_are_shown_with_their_results():
    trials = noisy_set(1)
    spec = dataclasses.replace(trials.spec, deadlines=(DeadlineSpec(path="planning", ms=300),))
    kept = [
        dataclasses.replace(trial, deadlines={"planning": Kept(1, int(trial.index > 0))}) for trial in trials.trials
    ]
    head = dataclasses.replace(trials, spec=spec, trials=tuple(kept))
    text = text_of(section_of(head, noisy_set(2)))
    assert "deadline of 'planning', 300 ms in 99 %: kept in 90.0 % of 10 passages; 9 of 10 trials kept to it" in text
    assert "deadline of 'planning', 300 ms in 99 %: never passed" in text_of(
        section_of(dataclasses.replace(trials, spec=spec), noisy_set(2))
    )


def test_samples_are_the_series_that_were_compared():
    head, base = noisy_set(1, failures=2), noisy_set(2)
    result = decide(head, base, Policy())
    t1 = next(each for each in section_of(head, base, result=result).metrics if each.name == "T1")
    assert [(each.trial - 1, each.value or math.inf) for each in t1.head.points] == list(
        zip(result.head_series["T1"].trials, result.head_series["T1"].values, strict=True)
    )
    without = dataclasses.replace(result, head_series={}, base_series={})
    assert all(each.head is each.base is None for each in section_of(head, base, result=without).metrics)


BUSY = Interference(seconds=4.0, cpus=2, others_s=6.4, programs={"cargo": 4.0, "cc1plus\x1b[2J": 2.0})
NAMED = "meanwhile, others used 1.6 of 2 CPUs: cargo, cc1plus\\x1b[2J"


def beside_a_load(trials):
    busy = tuple(dataclasses.replace(each, interference=BUSY) for each in trials.trials)
    return dataclasses.replace(trials, trials=busy, repeated=busy[:1])


def test_load_follows_the_first_reason_of_a_failure_and_is_a_fact_otherwise():
    base, slow = noisy_set(1, n=20), noisy_set(2, n=20, factors={"T1": 1.5})
    bad, good = section_of(beside_a_load(slow), base), section_of(beside_a_load(noisy_set(3, n=20)), base)
    assert (bad.verdict, good.verdict) == (Verdict.REGRESSED, Verdict.PASSED)
    assert bad.reasons[1] == NAMED
    assert f"this run: {NAMED}" not in describe_measurement(bad)
    assert f"this run: {NAMED}" in describe_measurement(good)
    for each in (bad, good):
        assert NAMED in render_failure(compose([each]))


def test_repeated_trials_are_counted_with_their_loads():
    section = section_of(beside_a_load(noisy_set(1, n=20)), noisy_set(2, n=20))
    words = "this run: 1 trial was made again because others used the machine: trial 1 (others used 1.6 of 2 CPUs: "
    assert any(line.startswith(words) for line in describe_measurement(section))


def test_retried_resets_are_counted_among_the_facts():
    trials = noisy_set(1, n=20)
    lost = dataclasses.replace(trials.trials[3], reset_failure="the arm could not return home (timed_out)")
    section = section_of(dataclasses.replace(trials, trials=(*trials.trials[:3], lost, *trials.trials[4:])))
    words = "this run: after trial 4, the arm could not return home (timed_out); the second attempt succeeded"
    assert words in describe_measurement(section)


def test_interference_during_a_stored_base_is_named():
    section = section_of(noisy_set(1, n=20), beside_a_load(noisy_set(2, n=20)))
    assert f"baseline: {NAMED}" in describe_measurement(section)


@pytest.mark.parametrize(
    ("placed", "others", "line"),
    [
        (
            [(995, 1000, True), (1000, 1000, True)],
            "0-1",
            "all else on 0-1: 99.75 % of the stack's CPU time on its CPUs",
        ),
        ([(3, 4, False), None], "0-1", "all else on 0-1: 75.00 % of the stack's events on its CPUs, below 99 %: "),
        ([(1, 1, True), (0, 9, False)], "", "as all else, for no other CPU is left: 100.00 % of the stack's CPU time"),
        ([None, None], "0", "all else on 0: nothing recorded shows where the stack ran"),
    ],
)
def test_share_of_a_stack_on_its_own_cpus(placed, others, line):
    trials = [trial(index, {"T1": 1.0}, placed=each and Placed(*each)) for index, each in enumerate(placed)]
    fingerprint = dataclasses.replace(FINGERPRINT, stack_cpus="2-3")
    head = trial_set(trials, fingerprint=fingerprint, other_cpus=others)
    (found,) = (each for each in describe_measurement(section_of(head)) if "stack on CPUs" in each)
    assert found.startswith(f"this run: stack on CPUs 2-3, {line}")
    assert found in " ".join(text_of(section_of(head), width=500).split())
