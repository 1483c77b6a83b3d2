"""A saved session has one verdict a scenario, whoever asks for it and in whatever order it was judged."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ldos.campaign.blocks import Bench, BlockObserver, Interleaved
from pytest_ldos.cli.results import compare_sets
from pytest_ldos.judge.baseline.history import HistoryStore, Version
from pytest_ldos.judge.baseline.store import BaselineStores
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.verdict import worst
from pytest_ldos.measure.trial.artifacts import new_run_folder, new_scenario_folder, write_trials
from pytest_ldos.plugin.runs import ScenarioRun
from pytest_ldos.plugin.scenario_test import judge_run
from pytest_ldos.plugin.settings import Settings
from pytest_ldos.scenario.settings import Sources, read_toml
from pytest_ldos.show.report import json_text
from pytest_ldos.show.report.compose import compose
from pytest_ldos.show.report.json_text import read_document
from tests.builders.command_line import run_ldos
from tests.builders.trials import noisy_set
from tests.conftest import HERE
from tests.fakes.bench import VERSIONS

NAMES = ("baseline", "cpu_load", "msg_load")
FACTORS = st.sampled_from([1.0, 1.0, 1.05, 1.1, 1.15, 1.2, 3.0])
SESSIONS = st.lists(
    st.tuples(st.integers(0, 10_000), FACTORS, st.sampled_from(["T1", "T3", "T4"]), st.integers(0, 3)),
    min_size=1,
    max_size=3,
)
"""One tuple a scenario: seed, factor and metric of the change, failed trials."""


def sets_of(session, *, interleaved):
    """Head and base of each scenario."""
    for name, (seed, factor, metric, failures) in zip(NAMES, session, strict=False):
        more = {"name": name, "session": f"of {name}" if interleaved else ""}
        yield noisy_set(seed, factors={metric: factor}, failures=failures, **more), noisy_set(seed + 1, **more)


def settings_of(place):
    config = SimpleNamespace(
        rootpath=place, invocation_params=SimpleNamespace(dir=place), option=SimpleNamespace(collectonly=False)
    )
    return Settings(config, Sources({"evidence": 0}, {}, read_toml(place)))


def judged_by_pytest(place, run_folder, pairs, order):
    """Verdict and section of each scenario, as the plugin's gate gives them one after the other."""
    ledger = SimpleNamespace(policy=Policy.configured({}, scenarios=len(pairs)))
    found = {}
    for number in order:
        head, base = pairs[number]
        folder = new_scenario_folder(run_folder, head.scenario)
        write_trials(folder, head)
        run = ScenarioRun(f"test_{head.scenario}", head.spec, folder, versions=VERSIONS)
        run.add_trials(head)
        if head.session:
            write_trials(folder.base, base)
            bench = Bench(spec=head.spec, folder=folder, goals="reach", observer=BlockObserver())
            cost = {"starts": 10, "seconds": 60.0, "durations": {}}
            run.interleaved.append(Interleaved(bench=bench, head=head, base=base, versions=VERSIONS, **cost))
        found[head.scenario] = judge_run(settings_of(place), ledger, run, head)
    return found


def ldos(*arguments):
    """Output of the command."""
    ended = run_ldos(*arguments)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def verdicts_in(report):
    return {each.scenario: each.verdict for each in read_document(Path(report)).sections}


@pytest.mark.parametrize("interleaved", [False, True])
@settings(max_examples=4)
@given(session=SESSIONS, data=st.data())
def test_every_caller_gives_the_same_verdict_in_any_order(interleaved, session, data):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        place = Path(folder).resolve()
        patched.chdir(place)
        patched.syspath_prepend(HERE.parent / ".ci" / "results")
        pairs = [*sets_of(session, interleaved=interleaved)]
        stores = BaselineStores(place / "baselines", place / ".ldos" / "baselines")
        for _, base in pairs:
            if not interleaved:
                stores.save(base, to_repository=False)
        order = data.draw(st.permutations(range(len(pairs))))
        first = judged_by_pytest(place, new_run_folder(place / ".ldos"), pairs, range(len(pairs)))
        run_folder = new_run_folder(place / ".ldos")
        found = judged_by_pytest(place, run_folder, pairs, order)
        verdicts = {name: result.verdict for name, (result, _) in found.items()}
        assert {name: result for name, (result, _) in found.items()} == {
            name: result for name, (result, _) in first.items()
        }
        for head, _ in pairs:  # another baseline is stored after the run was judged
            stores.save(dataclasses.replace(noisy_set(99), spec=head.spec), to_repository=False)

        ldos("report", run_folder, "--output", "report.json")
        assert verdicts_in("report.json") == verdicts
        sections, overall = compare_sets({head.scenario: (head, base) for head, base in pairs}, Path("base"))
        assert {each.scenario: each.verdict for each in sections} == verdicts
        assert overall is worst(verdicts.values())

        Path("result.json").write_text(json_text.render(compose([section for _, section in found.values()])), "utf-8")
        ldos("join", "embedded=result.json", "--output", "joined.json")
        assert verdicts_in("joined.json") == verdicts
        comment = ldos("comment", "joined.json")
        assert all(verdict.word in comment for verdict in verdicts.values())

        ldos("history", "import", run_folder, "--dir", "history")
        rows = HistoryStore(Path("history")).read().table.filter(pl.col("version") == Version.HEAD)
        known = dict(rows.select("scenario", "verdict").unique().iter_rows())
        assert known == {name: verdicts[name].value for name in known}
        if interleaved:
            from judge import Asked, Pair, _decide

            asked = Asked(commit="", base="", scenarios=frozenset(verdicts), project=place)
            results = _decide([Pair(*pair) for pair in pairs], asked, [])
            assert {each.scenario: each.verdict for each in results} == verdicts
