"""``--ldos-history``, as a user gives it."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import cast

import polars as pl
import pytest

from pytest_ldos.campaign.order import Role
from pytest_ldos.judge.baseline.history import HistoryStore
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.decide import GateResult
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.trial.artifacts import ScenarioFolder
from pytest_ldos.plugin.ledger import Ledger
from pytest_ldos.plugin.outputs import HistoryWriter
from pytest_ldos.plugin.runs import RunRecord, SessionParts
from pytest_ldos.plugin.settings import Settings
from pytest_ldos.scenario.settings import Sources, TomlSettings
from tests.builders.history import commit, interleaved_set, run_of

TWO = ("--ldos-trials=2", "--ldos-warmup=0", "--ldos-history=kept")


def test_judged_trials_are_added(run, project):
    result = run(*TWO)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*history: 1 set of trials added*"])
    table = HistoryStore(project.path / "kept").read().table
    (folder,) = project.path.glob(".ldos/runs/*")
    assert set(table["run"]) == {folder.name}
    assert set(table["verdict"]) == {"no_baseline"}
    assert set(table["trial"]) == {0, 1}


def test_unwritable_history_is_reported_before_measuring(run, project):
    (project.path / "kept").write_text("")
    result = run(*TWO)
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*kept is a file, not a directory*", "*name a directory that can be written*"])
    assert "trial 1 of" not in result.stdout.str()
    assert not (project.path / ".ldos").exists()


def written(tmp_path, run):
    run.folder = ScenarioFolder(tmp_path / "runs/the-run/baseline")
    config = cast("pytest.Config", SimpleNamespace(rootpath=tmp_path))
    settings = Settings(config, Sources({"history": "kept"}, {}, TomlSettings(), root=tmp_path))
    record = RunRecord(settings)
    record.runs.append(run)
    writer = HistoryWriter(SessionParts(settings, record, cast("Ledger", SimpleNamespace(policy=Policy()))))
    writer.write()
    return writer


def in_store(tmp_path):
    return HistoryStore(tmp_path / "kept").read().table.select("commit", "version", "verdict", "run").unique()


def test_interleaved_base_is_added_with_its_commit(tmp_path):
    judged = [(interleaved_set(1, Role.HEAD), GateResult("", Verdict.REGRESSED, ()))]
    run = SimpleNamespace(judged=judged, interleaved=[SimpleNamespace(base=interleaved_set(0, Role.BASE))])
    assert written(tmp_path, run).fault == ""
    sets = in_store(tmp_path).sort("version").rows()
    assert sets == [(commit(0), "base", "unjudged", "the-run"), (commit(1), "head", "regressed", "the-run")]


def test_invalid_trials_are_not_added(tmp_path):
    """Its numbers do not represent its commit, and later commits would be compared with them."""
    missed = {"summary": "load", "shortfall": "it reached 3 of 4"}
    base = dataclasses.replace(interleaved_set(0, Role.BASE), loads=(missed,))
    judged = [
        (interleaved_set(number, Role.HEAD), GateResult("", verdict, ()))
        for number, verdict in ((1, Verdict.INVALID), (2, Verdict.PASSED))
    ]
    writer = written(tmp_path, SimpleNamespace(judged=judged, interleaved=[SimpleNamespace(base=base)]))
    assert in_store(tmp_path)["verdict"].to_list() == ["passed"]
    assert [*writer.summary()] == [
        "history: 2 sets of trials not added: the measurement was invalid",
        f"history: 1 set of trials added; ldos history --dir {tmp_path / 'kept'}",
    ]


def test_an_invalid_run_is_not_added(run, project):
    """Its load was not reached."""
    project.makepyfile(
        test_scenario="""
        import dataclasses
        import pytest

        @pytest.mark.baseline
        def test_reach(panda_stack, ldos_trials, ldos_gate):
            missed = {"summary": "load", "shortfall": "it reached 3 of 4"}
            ldos_gate.check(dataclasses.replace(ldos_trials(panda_stack), loads=(missed,)))
        """
    )
    result = run(*TWO)
    assert result.ret == 11
    result.stdout.fnmatch_lines(["history: 1 set of trials not added: the measurement was invalid"])
    assert not list((project.path / "kept").rglob("*.parquet"))


def test_unexpected_fault_is_reported(tmp_path, monkeypatch):
    def broken(*_):
        raise pl.exceptions.ComputeError("out of ideas")

    monkeypatch.setattr(HistoryStore, "append", broken)
    run = SimpleNamespace(judged=[(run_of(0), GateResult("", Verdict.PASSED, ()))], interleaved=[])
    assert written(tmp_path, run).fault == "ComputeError: out of ideas"
