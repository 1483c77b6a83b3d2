"""The page of a trace: its drawings, and escaping of names."""

from __future__ import annotations

import base64
import html
import json
import re
import sys
import zlib
from collections import Counter
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from pytest_ldos.base.errors import Unavailable
from pytest_ldos.base.ros2 import BUILT_IN_PATHS, PathSpec
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.extract import extract_metrics
from pytest_ldos.show.page.formats import Format
from pytest_ldos.show.report import trace_graph as graphs
from pytest_ldos.show.report import trace_timeline as timelines
from pytest_ldos.show.report.analysis import Analysis, render_analysis
from pytest_ldos.show.report.trace_against import (
    ONE_RUN,
    Part,
    Waterfall,
    find_passages,
    mark_growth,
    render_against,
    see_run,
)
from pytest_ldos.show.report.trace_graph import OF_EVERY_NODE, build_graph, draw_graph, lay_out
from pytest_ldos.show.report.trace_timeline import describe_timeline, draw_timeline
from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution import columns as mapped
from pytest_ldos.trace.execution.build import NEEDED_EVENTS, build_execution
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.lineage import Kind, LineageIndex
from pytest_ldos.trace.flow.summary import STATES, executor_states, states_in_windows
from pytest_ldos.trace.flow.timeliness import connections_on, summarize_connections
from tests.builders.foreign import analysis
from tests.builders.ros2 import Recording
from tests.oracles import chromium
from tests.unit.trace.flow.test_difference import system

PATHS = (PathSpec(name="whole", via=("/src_a", "/sync_out"), deadline_ms=12.2),)


@pytest.fixture(scope="module")
def analyzed(golden):
    return analyze(golden("pipeline_multi_links"), PATHS)


def analyze(trace, paths=()):
    model = build_execution(read_trace(trace, events=NEEDED_EVENTS))
    flow = build_flow(model, paths)
    goals = extract_metrics(model, nominal_period_ns=1_000_000, flow=flow)
    return Analysis(name=trace.name, flow=flow, paths=paths, goals=goals, metrics=tuple(METRICS.values()))


@pytest.fixture(scope="module")
def page(analyzed):
    return render_analysis(analyzed, Format.HTML)


def test_the_graph_has_nodes_topics_and_processes(analyzed):
    flow = analyzed.flow
    passages = find_passages(flow, PATHS, None)
    graph = build_graph(flow.model, summarize_connections(flow), connections_on(flow, passages[0].instances))
    tips = {box.tip.partition(": ")[0]: box for box in graph.boxes}
    assert {"/source", "/relay", "/partial_sync", "/async_cache", "/sink", "/src_a", "/relayed"} <= set(tips)
    assert not {"/rosout", "/parameter_events"} & set(tips)
    assert "/parameter_events" in graph.left_out[0]
    assert all(name.startswith("pipeline (") for name in graph.processes.values())
    ways = {(graph.boxes[arrow.tail].lines[0], graph.boxes[arrow.head].lines[0]) for arrow in graph.arrows}
    assert {("/source", "/src_a"), ("/src_a", "/relay"), ("/relay", "/relayed")} <= ways
    assert tips["/src_a"].is_on_path
    assert not tips["/src_b"].is_on_path


def test_process_names_include_the_host_if_there_are_several():
    recording = Recording()
    for number, host in enumerate(("arm", "base")):
        recording.process(number + 1, host=host, name="app").node(f"/{host}").publisher("/t")
    flow = build_flow(recording.model())
    graph = build_graph(flow.model, summarize_connections(flow), summarize_connections(flow).head(0))
    assert sorted(graph.processes.values()) == ["app (1) on arm", "app (2) on base"]


def test_boxes_do_not_overlap_and_are_within_their_processes(analyzed):
    flow = analyzed.flow
    graph = build_graph(flow.model, summarize_connections(flow), summarize_connections(flow).head(0))
    layout = lay_out(graph)
    for number, (box, one) in enumerate(zip(graph.boxes, layout.boxes, strict=True)):
        assert (one.width, one.height) == pytest.approx(box.size, abs=0.1)
        for other in layout.boxes[:number]:
            assert (
                one.x >= other.x + other.width
                or other.x >= one.x + one.width
                or one.y >= other.y + other.height
                or other.y >= one.y + one.height
            )
        if box.process is not None:
            frame = layout.processes[box.process]
            assert frame.x <= one.x
            assert one.x + one.width <= frame.x + frame.width
    for arrow, way in zip(graph.arrows, layout.ways, strict=True):
        assert bool(arrow.label) == (way.label is not None)
        assert (len(way.points) - 1) % 3 == 0


def test_a_graph_that_is_too_large_is_drawn_in_part(analyzed, monkeypatch):
    monkeypatch.setattr(graphs, "MOST_CONNECTIONS", 4)
    flow = analyzed.flow
    graph = build_graph(flow.model, summarize_connections(flow), summarize_connections(flow).head(0))
    assert len(graph.arrows) == 4
    assert "fewer messages" in graph.left_out[-1]


def test_without_graphviz_the_page_has_a_note_and_the_table(analyzed, monkeypatch):
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    with pytest.raises(Unavailable):
        lay_out(graphs.Graph((), (), {}))
    page = render_analysis(analyzed, Format.HTML)
    assert "pygraphviz" in page
    assert "Connections of nodes and topics" in page


def test_names_are_not_passed_to_graphviz(monkeypatch):
    import pygraphviz

    seen = []
    monkeypatch.setattr(pygraphviz, "AGraph", lambda string: _recorded(seen, string))
    flow = analysis(lambda word: f"{word}FOREIGN").flow
    with pytest.raises(StopIteration):
        draw_graph(build_graph(flow.model, summarize_connections(flow), summarize_connections(flow).head(0)))
    assert seen
    assert "FOREIGN" not in seen[0]


def _recorded(seen, string):
    seen.append(string)
    raise StopIteration


def test_waterfalls_sum_to_the_latency(analyzed):
    (passages,) = find_passages(analyzed.flow, PATHS, None)
    latencies = passages.instances.table["latency_ns"].sort().to_list()
    assert passages.waterfall("median", 0.5).duration_ns == latencies[(len(latencies) - 1) // 2]
    assert passages.waterfall("worst", 1.0).duration_ns == latencies[-1]


def test_the_part_that_grew_most_is_marked():
    base = Waterfall("base", (Part("a: x", 10), Part("b: y", 20)))
    head = Waterfall("head", (Part("a: x", 11), Part("b: y", 40), Part("c: z", 5)))
    assert [[part.is_marked for part in each.parts] for each in mark_growth(base, head)] == [
        [False, True],
        [False, True, False],
    ]
    assert not any(part.is_marked for each in mark_growth(head, base) for part in each.parts)


def test_page_is_complete_with_one_script(page):
    for words in (
        "Flow of messages",
        "path whole",
        "median passage",
        "worst passage",
        "Timeline",
        "Tables",
        "callbacks",
    ):
        assert words in page
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', html.unescape(page))
    assert policy.startswith("default-src 'none'")
    assert len(re.findall(r"sha256-", policy)) == 1
    assert len(re.findall("<script", page)) == 2


def payload(page):
    (found,) = re.findall(r'<script type="application/json">(.*?)</script>', page)
    return json.loads(found)


def unpacked(data):
    content, tables = zlib.decompress(base64.b64decode(data["packed"])), {}
    for kind, count, names in data["columns"]:
        tables[kind] = {}
        for name in names:
            planes = np.frombuffer(content[: 4 * count], dtype=np.uint8).reshape(4, count)
            column = np.ascontiguousarray(planes.T).view("<i4").ravel()
            tables[kind][name] = np.cumsum(column) if name in {"begin", "sent", "tail"} else column
            content = content[4 * count :]
    return tables


def test_the_timeline_has_every_run_at_its_time(analyzed, page):
    data, model = payload(page), analyzed.flow.model
    runs = unpacked(data)["runs"]
    expected = np.sort((model.callback_runs["start_ns"].to_numpy() - timelines._extent(model)[0]) // 1000)
    assert np.sort(runs["begin"]).tolist() == expected.tolist()
    names = {data["words"][word] for word in set(runs["word"].tolist())}
    assert "/relay: /src_a" in names
    arrows = unpacked(data)["arrows"]
    assert len({*zip(*(arrows[name].tolist() for name in ("tail", "taken", "node")), strict=True)}) == len(
        analyzed.flow.transport
    )
    assert (arrows["taken"] >= 0).all()


def test_too_many_neighbouring_spans_are_merged(analyzed, monkeypatch):
    monkeypatch.setattr(timelines, "MOST", 100)
    timeline = timelines.build_timeline(analyzed.flow, {}, [], None)
    runs = timeline.slices["runs"]
    assert len(runs) <= 100
    assert len(runs) + runs.merged == len(analyzed.flow.model.callback_runs)
    order = np.lexsort((runs.begin_us, runs.track))
    assert order.tolist() == list(range(len(runs)))
    assert len(timeline.arrows) <= 100 + len(analyzed.flow.uses)
    received = {*zip(timeline.arrows.tail.tolist(), timeline.arrows.taken_us.tolist(), strict=True)}
    assert len(received) + timeline.arrows.left_out == len(analyzed.flow.transport)


def test_the_timeline_has_the_states_of_executors(analyzed, page):
    tables, model = unpacked(payload(page)), analyzed.flow.model
    begin_ns, end_ns = timelines._extent(model)
    states = executor_states(model)
    for name in STATES:
        spans = states.filter(pl.col("state") == name, pl.col("begin_ns") >= begin_ns, pl.col("end_ns") <= end_ns)
        lengths = spans["end_ns"] - spans["begin_ns"]
        assert len(spans) <= len(tables[name]["length"]) <= len(spans) + 12, "and those that the borders cut"
        assert tables[name]["length"].sum() >= lengths.sum() / 1000 - len(lengths)
        assert f'class="{name}"' in page
    assert "executor collects what is ready" in page
    assert "executor states are absent" not in page


def test_states_read_in_windows_are_the_same(analyzed, monkeypatch):
    whole = timelines.build_timeline(analyzed.flow, {}, [], None)
    monkeypatch.setattr(mapped, "CHUNK_ROWS", 200)
    assert len(list(states_in_windows(analyzed.flow.model))) > 5
    parts = timelines.build_timeline(analyzed.flow, {}, [], None)
    for name in STATES:
        one, other = whole.slices[name], parts.slices[name]
        assert len(one) <= len(other)
        assert abs(int(one.length_us.sum() - other.length_us.sum())) <= len(other)
        assert set(one.track.tolist()) == set(other.track.tolist())


def test_absent_states_are_reported(golden):
    page = html.unescape(render_analysis(analyze(golden("rclpy_talker_listener")), Format.HTML))
    assert "executor states are absent: threads outside executors" in page
    assert "executor collects what is ready" not in page


def test_threads_without_states_are_counted(analyzed):
    made = replace(timelines.build_timeline(analyzed.flow, {}, [], None), without_states=3)
    assert any("absent in 3 of these" in each for each in describe_timeline(made))


HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=document.title='owned'>\"'&"


def test_hostile_names_are_escaped():
    page = render_analysis(analysis(HOSTILE.__add__), Format.HTML)
    assert len(re.findall("<script", page)) == 2
    assert "<img" not in page
    assert any("owned" in word for word in payload(page)["words"])


@pytest.fixture(scope="module")
def goals(golden):
    return analyze(golden("workspace_mock"), BUILT_IN_PATHS)


def test_each_goal_leads_to_its_slice(goals):
    page = render_analysis(goals, Format.HTML)
    links = re.findall(r'href="#(goal-\d+)"', page)
    assert links == re.findall(r'<g id="(goal-\d+)"', page) == ["goal-1", "goal-2", "goal-3"]
    assert [name for name, *_ in payload(page)["goals"]] == ["baseline 1", "baseline 2", "baseline 3"]
    for words in ("path planning", "path execution", "slowest goal, baseline 2", "T1 planning latency: median 24.0 ms"):
        assert words in page


def test_goal_absent_from_the_trace_has_no_link(goals):
    first, *others = goals.goals
    unseen = replace(goals.goals[first], trial=None)
    page = render_analysis(
        replace(goals, goals={first: unseen, **{name: goals.goals[name] for name in others}}), Format.HTML
    )
    assert re.findall(r'<a href="#(goal-\d+)"><bdi>([^<]*)', page) == [
        ("goal-1", "baseline 2"),
        ("goal-2", "baseline 3"),
    ]
    assert [name for name, *_ in payload(page)["goals"]] == ["baseline 2", "baseline 3"]


def test_a_damaged_trace_is_marked(golden):
    page = render_analysis(analyze(golden("truncated_cut")), Format.HTML)
    assert re.search(r'<h1>.*?class="badge bad">.*?incomplete', page)
    assert "parts of the trace are missing" in page


def test_spans_with_lost_events_are_shaded(golden):
    lossy = analyze(golden("discarded"))
    timeline = timelines.build_timeline(lossy.flow, {}, [], None)
    assert timeline.gaps
    ends = [0, *(begin + length for begin, length in timeline.gaps)]
    assert all(begin >= end for (begin, _), end in zip(timeline.gaps, ends, strict=False))
    page = render_analysis(lossy, Format.HTML)
    assert "in which events were lost" in page
    assert page.count('class="gap"') == len(timeline.gaps) == len(payload(page)["gaps"])


@pytest.mark.acceptance
@pytest.mark.acceptance
def test_a_million_spans_make_a_page_below_5_mb(analyzed):
    generator = np.random.default_rng(1)
    begin = np.sort(generator.integers(0, 600_000_000, 1_000_000))
    track, word = (generator.integers(0, most, len(begin)) for most in (40, 200))
    slices = timelines._bounded(track, begin, generator.integers(0, 500, len(begin)), word)
    assert len(slices) <= timelines.MOST
    assert len(slices) + slices.merged == len(begin)
    made = timelines.build_timeline(analyzed.flow, {}, [], None)
    rows = generator.integers(0, 40, timelines.MOST)
    times = np.sort(generator.integers(0, 600_000_000, timelines.MOST))
    taken, tail = times + generator.integers(0, 999, timelines.MOST), np.arange(timelines.MOST)
    made_of = np.minimum(tail + generator.integers(0, 50, timelines.MOST), timelines.MOST - 1)
    arrows = timelines.Arrows(rows, times, rows, rows, tail, rows[::-1], taken, rows, made_of)
    states = timelines._bounded(
        track, begin, generator.integers(0, 500, len(begin)), np.full(len(begin), -1), most=60_000
    )
    assert len(states) <= 60_000
    full = replace(
        made,
        length_us=600_000_000,
        tracks=tuple(f"track {number}" for number in range(40)),
        slices=dict.fromkeys(made.slices, slices) | dict.fromkeys(STATES, states),
        arrows=arrows,
    )
    assert len(str(draw_timeline(full))) < 5_000_000


def made(name, flow):
    return Analysis(name=name, flow=flow, paths=(), goals={}, metrics=tuple(METRICS.values()))


def test_page_shows_the_slowed_part():
    base, head = (
        see_run(made(name, system(seed, work_us=work)), drawn=True)
        for name, seed, work in (("before", 1, 200), ("after", 2, 300))
    )
    page = html.unescape(render_against([base], [head], Format.HTML))
    (answer,) = re.findall(r'<p class="answer"><bdi>(.*?)</bdi>', page)
    assert answer.startswith(
        "1 time or rate differs beyond chance, 0 new, 0 gone; the largest: run time of callback /worker: /a, +"
    )
    assert "longer" in page


def test_the_part_of_a_slower_path_is_named_first(analyzed):
    seen = see_run(analyzed, drawn=True)
    key = next(each for each in seen.run.samples if each[1] == "whole")
    latencies = np.tile(np.sort(seen.run.samples[key])[:20], 10)
    one = replace(seen, run=replace(seen.run, samples=seen.run.samples | {key: latencies}))
    slower = {key: latencies * 2}
    (name, found), *_ = one.waterfalls.items()
    grown = replace(found, parts=tuple(replace(each, duration_ns=each.duration_ns * 2) for each in found.parts))
    other = replace(one, run=replace(one.run, samples=one.run.samples | slower), waterfalls={name: grown})
    answer = html.unescape(render_against([one], [other], Format.HTML))
    assert "in path whole, most of it in timer wait: /async_cache: timer of 100 ms" in answer
    assert "most of it in" not in html.unescape(render_against([one], [one], Format.HTML))


def test_two_traces_are_reported_as_one_run_each(analyzed):
    one, other = (see_run(each, drawn=True) for each in (analyzed, replace(analyzed, name="other")))
    text = render_against([one], [other], width=200)
    assert ONE_RUN.partition(".")[0] in " ".join(text.split())
    assert "0 times or rates differ" in text
    page = render_against([one], [one], Format.HTML)
    assert "base, median passage" in page
    assert json.loads(render_against([one], [one], Format.JSON))["new"] == []


def test_evidence_of_several_runs_is_described(analyzed):
    runs = [see_run(replace(analyzed, name=f"run {number}"), drawn=True) for number in range(10)]
    few = render_against(runs[:2], runs[2:4], Format.HTML)
    assert "2 runs of base and 2 runs of head" in few
    assert "by chance in 1 of 3 quantities; with 5 runs of each, runs are tested" in few
    assert "base, median of 2 runs" in few
    many = render_against(runs[:5], runs[5:], Format.HTML)
    assert "differences are tested over runs" in many
    assert "Traces run 5, run 6, run 7 and 2 more compared with run 0, run 1, run 2 and 2 more" in many
    assert json.loads(render_against(runs[:5], runs[5:], Format.JSON))["evidence"] == "runs"


def test_tables_as_json(analyzed):
    data = json.loads(render_analysis(analyzed, Format.JSON))
    assert {row["topic"]: row["messages"] for row in data["topics"]}["/src_a"] == 150
    assert data["damage"] == ""


FOLLOWS = """<script>
const key = (name) => document.querySelector(".canvas").dispatchEvent(new KeyboardEvent("keydown", { key: name }));
const follow = () => {
  let at = -1;
  for (const number of NUMBERS) {
    for (; at < number; at += 1) { key("n"); }
    const lit = [...document.querySelectorAll("svg.flow g.topic.lit > title")].map((each) => each.textContent.split(": ")[0]);
    const line = document.createElement("p");
    line.textContent = `${document.querySelector("[role=status]").textContent} ${lit.sort()}`;
    document.body.append(line);
  }
  key("Escape");
  document.body.dataset.followed = "yes";
};
new MutationObserver((_, observer) => {
  if (document.querySelector(".canvas")) { observer.disconnect(); follow(); }
}).observe(document.querySelector(".timeline"), { childList: true });
</script>"""
"""Follows publications of these numbers by keys, and writes the status and the lit topics of the graph."""


@pytest.mark.skipif(chromium.PROGRAM is None, reason=chromium.REASON)
class TestInABrowser:
    def test_script_runs_without_console_messages(self, page, tmp_path):
        found = chromium.look_at(page, tmp_path, budget_ms=5000, until='class="controls"')
        assert found.console == []
        assert 'class="controls"' in found.dom
        assert "<canvas" in found.dom
        assert found.dom.count('<button type="button">') > 20
        assert re.search(r'role="status">[^<]* from ', found.dom)

    def test_followed_publication_lights_what_it_came_from_and_led_to(self, analyzed, page, tmp_path):
        """As `LineageIndex` finds it, which searches another graph."""
        sent, words = unpacked(payload(page))["messages"], payload(page)["words"]
        model, index = analyzed.flow.model, LineageIndex(analyzed.flow)
        times = (model.publications["time_ns"] - timelines._extent(model)[0]) // 1000
        topics = model.publishers["topic"].to_list()
        expected = {}
        for number in range(0, len(sent["sent"]), 23):
            topic = words[sent["topic"][number]]
            rows = (times == int(sent["sent"][number])).arg_true().to_list()
            (origin,) = [row for row in rows if topics[model.publications["publisher"][row]] == topic]
            found = [index.forward(Kind.PUBLICATION, origin), index.backward(Kind.PUBLICATION, origin)]
            kinds = Counter(kind for kind, _ in {(each.kind, each.id) for one in found for each in one.instances})
            lit = {*found[0].topics, *found[1].topics} - OF_EVERY_NODE
            expected[number] = (topic, kinds[Kind.PUBLICATION], kinds[Kind.TAKE], ",".join(sorted(lit)))
        assert max(publications for _, publications, _, _ in expected.values()) > 3
        opened = chromium.POLICY.sub("", page) + FOLLOWS.replace("NUMBERS", str([*expected]))
        found = chromium.look_at(opened, tmp_path, budget_ms=5000, until='data-followed="yes"')
        assert found.console == []
        for topic, publications, receptions, lit in expected.values():
            counts = rf"following {topic} at [^:]*: {publications} publications?, {receptions} receptions?;"
            assert re.search(f"{counts} Escape ends it {lit}<", found.dom), (topic, publications, receptions, lit)
        assert 'class="following"' not in found.dom, "Escape ended it"

    def test_names_are_never_executed(self, tmp_path):
        made = render_analysis(analysis(HOSTILE.__add__), Format.HTML)
        found = chromium.look_at(made, tmp_path, budget_ms=3000)
        assert "<title>owned" not in found.dom
        assert found.console == []

    @pytest.mark.parametrize(
        ("width", "dark"),
        [
            pytest.param(1200, False, id="wide, light", marks=pytest.mark.acceptance),
            pytest.param(420, True, id="narrow, dark"),
        ],
    )
    def test_page_is_legible_accessible_and_fits_the_window(self, page, tmp_path, width, dark):
        opened = page.replace("<details>", "<details open>")
        probe = (
            f'{{"overflow": {chromium.OVERFLOW}, "contrasts": {chromium.CONTRASTS}, '
            f'"unreachable": {chromium.HIDDEN_OVERFLOW}, "focused": {chromium.FOCUSED}}}'
        )
        found = chromium.look_at(opened, tmp_path, width=width, dark=dark, script=probe).result
        assert found["overflow"] <= 0
        assert {name: ratio for name, ratio in found["contrasts"].items() if ratio < 4.5} == {}
        assert found["unreachable"] == []
        assert all(found["focused"])

    def test_table_is_sorted_by_clicking_a_heading(self, page, tmp_path):
        script = """(() => {
          const table = [...document.querySelectorAll("main table")].find(each => each.tHead.textContent.includes("callback"));
          const heading = [...table.tHead.rows[0].cells].find(each => each.textContent.startsWith("runs"));
          const values = () => [...table.tBodies[0].rows].map(row => Number(row.cells[heading.cellIndex].textContent));
          heading.querySelector("button").click();
          const down = values();
          heading.querySelector("button").click();
          return [down, values(), heading.getAttribute("aria-sort")];
        })()"""
        found = chromium.look_at(page, tmp_path, script=script).result
        assert isinstance(found, list), found
        down, up, state = found
        assert down == sorted(down, reverse=True)
        assert up == sorted(up)
        assert (state, len(up) > 5) == ("ascending", True)
