"""Everything that can be shown, with one foreign word in front of each of its texts; by the function that shows it."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

from pytest_ldos.base.ros2 import PathSpec
from pytest_ldos.base.text import Rendered
from pytest_ldos.campaign.breaking_result import BreakingResult
from pytest_ldos.campaign.commit_search import CommitResult
from pytest_ldos.campaign.selftest import SelfTestResult
from pytest_ldos.cli.setup import render_diagnosis, render_diagnosis_json
from pytest_ldos.doctor.changes import error, ok, warning
from pytest_ldos.fleet.traces import GoalValue, Outcome, Status, TraceSummary
from pytest_ldos.instruments.study import Study
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.judge.baseline.store import StoredBaseline
from pytest_ldos.judge.baseline.trend import Trend, build_trend
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.trial.artifacts import ScenarioFolder, write_trials
from pytest_ldos.record.profiles import FoldedStacks, compare_profiles
from pytest_ldos.show.page.formats import Format
from pytest_ldos.show.page.model import Badge, Tone
from pytest_ldos.show.report import history as history_data
from pytest_ldos.show.report import history_page, json_text, markdown, terminal, workflow_commands
from pytest_ldos.show.report import html as page
from pytest_ldos.show.report import sweep as sweep_data
from pytest_ldos.show.report.analysis import Analysis, render_analysis, render_fleet, render_live
from pytest_ldos.show.report.bisect import render_bisect_as
from pytest_ldos.show.report.breaking import render_breaking_as
from pytest_ldos.show.report.calibration import (
    render_calibration,
    render_calibration_json,
    render_self_test,
    render_self_test_json,
)
from pytest_ldos.show.report.document import Document
from pytest_ldos.show.report.drawings import draw_difference, draw_flame
from pytest_ldos.show.report.flame import render_flame, render_flame_difference, render_profile
from pytest_ldos.show.report.history import render_baselines, render_overview, render_trend
from pytest_ldos.show.report.history_page import render_badge, render_endpoint
from pytest_ldos.show.report.json_text import name_reports, render_as
from pytest_ldos.show.report.study import render_study_as
from pytest_ldos.show.report.sweep import SweepReport, render_for, render_text
from pytest_ldos.show.report.trace_against import SeenRun, render_against, see_run
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.graph import FlowGraph
from tests.builders.breaking import breaking_result
from tests.builders.commits import MadeUpHistory, search
from tests.builders.history import series_of
from tests.builders.reports import full_document
from tests.builders.ros2 import Recording
from tests.builders.studies import study
from tests.builders.sweeps import full_report
from tests.builders.trials import noisy_set
from tests.unit.show.report.test_calibration_report import RESULT as CALIBRATED
from tests.unit.show.report.test_calibration_report import TESTED

Say = Callable[[str], str]
"""A foreign name for one of this project's."""

WIDTH = 80
COLORED: Mapping[str, Any] = {"width": WIDTH, "color": True}


def spoken(value: Any, say: Say, *, ours: frozenset[str] = frozenset()) -> Any:
    """The same value, each text in it as somebody says it; what is empty stays so.

    Args:
        ours: fields that stay as they are.
    """
    if isinstance(value, str) and not isinstance(value, Enum):
        return say(value) if value else value
    if isinstance(value, Mapping):
        return {spoken(name, say, ours=ours): spoken(each, say, ours=ours) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(spoken(each, say, ours=ours) for each in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in dataclasses.fields(value) if each.init and each.name not in ours]
        return dataclasses.replace(value, **{name: spoken(getattr(value, name), say, ours=ours) for name in names})
    return value


def document(say: Say) -> Document:
    return spoken(full_document(), say)


def reports(say: Say) -> Any:
    return name_reports([document(say), full_document()], ["a/result.json", "b/result.json"])


def trends(say: Say) -> Any:
    reported = spoken(_trend(), say)
    return [(reported, reported.commits)]


@cache
def _trend() -> Trend:
    return dataclasses.replace(
        build_trend(series_of([0.01 * number for number in range(12)])), notes=("a note",), pinned="0123"
    )


def flow_of(say: Say) -> FlowGraph:
    """A trace in which somebody chose every name."""
    say = _in_a_trace(say)
    recording = Recording()
    process = recording.process(1, name=say("app"))
    node = process.node(f"/cell/{say('talker')}")
    topic = f"/{say('joint_states')}"
    sender, receiver = node.publisher(topic), node.subscription(topic, symbol=say("void Arm::on_state(int)"))
    timer, _ = node.timer(10_000_000), node.service(say("/plan"))
    thread = process.thread().at(1_000_000)
    for _ in range(3):
        with thread.running(timer):
            message = thread.publish(sender)
        thread.spend(100_000)
        with thread.receiving(receiver, message):
            thread.spend(50_000)
        thread.spend(9_000_000)
    return build_flow(recording.model(), [PathSpec(name=say("path"), via=(topic, f"/{say('out')}"))])


def _in_a_trace(say: Say) -> Say:
    """The decoded name."""
    return lambda text: say(text).encode("utf-8", "replace").decode()


def analysis(say: Say) -> Analysis:
    flow, say = flow_of(say), _in_a_trace(say)
    paths = [PathSpec(name=say("path"), via=tuple(f"/{say(name)}" for name in ("joint_states", "none")))]
    return Analysis(name=say("trace"), flow=flow, paths=paths, goals={}, metrics=tuple(METRICS.values()))


def compared(say: Say) -> tuple[list[SeenRun], list[SeenRun]]:
    return [see_run(analysis(str), drawn=True)], [see_run(analysis(each), drawn=True) for each in (say, str)]


def summaries(say: Say) -> list[TraceSummary]:
    value = GoalValue(
        goal="reach 1", goal_id="a", began_ns=1, outcome=Outcome.REACHED, metric="T1", unit="ms",
        status=Status.MEASURED, value=3.0, source="markers",
    )  # fmt: skip
    whole = TraceSummary(trace="runs/a", nodes=2, reached=1, values=(value,))
    found = [whole, dataclasses.replace(whole, trace="runs/b", damage="3 bytes"), TraceSummary(trace="c", problem="no")]
    return [spoken(each, say) for each in found]


def baselines(say: Say) -> Rendered:
    with tempfile.TemporaryDirectory() as folder:
        trials = noisy_set(1, n=2, commit=say("0123"))
        trials = dataclasses.replace(trials, fingerprint=dataclasses.replace(trials.fingerprint, hostname=say("lab")))
        write_trials(ScenarioFolder(Path(folder)), trials)
        key = BaselineKey(say("embedded"), say("a-class"), say("baseline"))
        stored = StoredBaseline(key=key, file=Path(folder) / "trials.json", is_local=True, is_pinned=False)
        return render_baselines([stored, dataclasses.replace(stored, file=Path(folder) / "none")], **COLORED)


def profile(say: Say) -> FoldedStacks:
    return FoldedStacks({tuple(map(say, ("p", "f", "g"))): 600, tuple(map(say, ("p", "h"))): 400})


def difference(say: Say) -> Any:
    other = FoldedStacks({tuple(map(say, ("p", "f", "g"))): 200, tuple(map(say, ("p", "h"))): 800})
    return compare_profiles([profile(say)], [other])


def findings(say: Say) -> Any:
    plain = (ok("disk", "9 GiB free"), warning("stray process 1", "x y" * 40, "kill 1"), error("LTTng", "no", "apt"))
    return [spoken(each, say) for each in plain]


def sweep(say: Say) -> SweepReport:
    return spoken(_sweep(), say, ours=frozenset({"state"}))


@cache
def _sweep() -> SweepReport:
    return full_report(over={"dds_flood.rate": [100, 500, 1000], "rmw": ["rmw_one", "rmw_two"]})


def broken(say: Say) -> BreakingResult:
    found = breaking_result()
    named = dataclasses.replace(found.plan, address=say(found.plan.address))
    reported = {name: spoken(getattr(found, name), say) for name in ("levels", "cause", "notes")}
    template = spoken(found.template, say, ours=frozenset({"spec", "metrics", "trials"}))
    return dataclasses.replace(
        found, plan=named, limit=say("limit"), stopped=say("stopped"), template=template, **reported
    )


def bisected(say: Say) -> CommitResult:
    found = _bisected()
    fields = ("good", "bad", "suspects", "visited", "skipped", "why", "explanation")
    reported = {name: spoken(getattr(found, name), say) for name in fields}
    template = spoken(found.template, say, ours=frozenset({"spec", "metrics", "trials"}))
    return dataclasses.replace(found, template=template, **reported)


@cache
def _bisected() -> CommitResult:
    with tempfile.TemporaryDirectory() as folder:
        return search(MadeUpHistory(commits=5, slow={3: 1.5}, unbuildable=frozenset({2})), Path(folder))


def badge(say: Say) -> Badge:
    return Badge(say("passed"), Tone.GOOD)


def tested(say: Say) -> SelfTestResult:
    reported = spoken(TESTED, say, ours=frozenset({"fault", "base"}))
    return dataclasses.replace(reported, base=noisy_set(1, name=say("baseline")))


def found_by_instrument(say: Say) -> Study:
    return spoken(study(), say, ours=frozenset({"quantities", "rounds", "unit"}))


def _formats(render: Callable[..., Rendered], made: Callable[[Say], Any]) -> Callable[[Say], list[Rendered]]:
    kinds = [kind for kind in Format if kind is not Format.JSON]
    return lambda say: [render(made(say), kind, **COLORED) for kind in kinds]


def _one(render: Callable[[Say], Rendered]) -> Callable[[Say], list[Rendered]]:
    return lambda say: [render(say)]


SHOWN: Mapping[Callable[..., Rendered], Callable[[Say], list[Rendered]]] = {
    terminal.render: _one(lambda say: terminal.render(document(say), **COLORED)),
    terminal.render_failure: _one(lambda say: terminal.render_failure(document(say))),
    terminal.render_problems: _one(lambda say: terminal.render_problems(document(say).sections[0], **COLORED)),
    markdown.render: _one(lambda say: markdown.render(document(say))),
    markdown.render_several: _one(lambda say: markdown.render_several(reports(say))),
    page.render: _one(lambda say: page.render(document(say))),
    workflow_commands.render: _one(lambda say: workflow_commands.render(document(say))),
    workflow_commands.render_several: _one(lambda say: workflow_commands.render_several(reports(say))),
    render_as: _formats(render_as, document),
    render_overview: _one(lambda say: render_overview([each for each, _ in trends(say)], **COLORED)),
    render_trend: lambda say: [render_trend(each, shown=points, **COLORED) for each, points in trends(say)],
    history_data.render_csv: _one(lambda say: history_data.render_csv(trends(say))),
    history_page.render_page: _one(lambda say: history_page.render_page(trends(say))),
    render_analysis: _formats(render_analysis, analysis),
    render_against: _formats(lambda made, *args, **how: render_against(*made, *args, **how), compared),
    render_live: lambda say: [
        render_live(say("t"), analysis(say).flow, analysis(say).paths, most=most, **COLORED) for most in (0, 3)
    ],
    render_fleet: _one(lambda say: render_fleet(summaries(say), whole=False, **COLORED)),
    render_baselines: _one(baselines),
    render_diagnosis: _one(lambda say: render_diagnosis(findings(say), **COLORED)),
    render_calibration: _one(lambda say: render_calibration(spoken(CALIBRATED, say), file=say("x"), **COLORED)),
    render_self_test: _one(lambda say: render_self_test(tested(say), **COLORED)),
    render_profile: _one(lambda say: render_profile(profile(say), 10)),
    draw_flame: _one(lambda say: draw_flame(profile(say), title=say("t"), notes=[say("n")])),
    draw_difference: _one(lambda say: draw_difference(difference(say), title=say("t"), notes=[say("n")])),
    render_flame: _one(lambda say: render_flame(profile(say), say("t"), [say("n")])),
    render_flame_difference: _one(lambda say: render_flame_difference(difference(say), say("t"))),
    render_text: _one(lambda say: render_text(sweep(say), **COLORED)),
    sweep_data.render_csv: _one(lambda say: sweep_data.render_csv(sweep(say))),
    render_for: lambda say: [render_for(sweep(say), Path(f"x{end}")) for end in (".html", ".md")],
    render_study_as: _formats(render_study_as, found_by_instrument),
    render_breaking_as: _formats(render_breaking_as, broken),
    render_bisect_as: _formats(render_bisect_as, bisected),
    render_badge: _one(lambda say: render_badge(badge(say))),
    render_endpoint: _one(lambda say: render_endpoint(badge(say))),
}
"""Every renderer of words, and what it shows where somebody has a say in all of them."""

AS_JSON: Mapping[Callable[..., Rendered], Callable[[Say], Rendered]] = {
    json_text.render: lambda say: json_text.render(document(say)),
    history_data.render_json: lambda say: history_data.render_json(trends(say)),
    sweep_data.render_json: lambda say: sweep_data.render_json(sweep(say)),
    render_diagnosis_json: lambda say: render_diagnosis_json(findings(say), stack=say("x")),
    render_calibration_json: lambda say: render_calibration_json([(spoken(CALIBRATED, say), say("x"))]),
    render_self_test_json: lambda say: render_self_test_json(tested(say)),
}
"""Every renderer of data."""


def texts_in(value: Any) -> Iterator[str]:
    """All texts of plain data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield name
            yield from texts_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts_in(each)
