"""The seeded planner in the real stack: two runs of it plan the same paths."""

from __future__ import annotations

TRIALS = 5
UNSEEDED = '\n[tool.ldos.scenarios.baseline]\nseeds = "random"\n'


def plans_of(project, place: str) -> list[int]:
    """Durations of the plans of a run, which is kept in a place of its own."""
    _, output = project.run(f"--ldos-trials={TRIALS}", "--ldos-warmup=1", f"--ldos-output={place}")
    trials = project.saved(output=place).trials
    assert [each.outcome for each in trials] == ["success"] * TRIALS, output
    assert all(each.cpu_work_ns for each in trials)
    return [each.plan_duration_ns for each in trials]


def test_trials_of_one_seed_have_the_same_plan(project, rmw, leaves_nothing, monkeypatch):
    monkeypatch.setitem(project.environment, "LDOS_RMW", rmw)
    first = plans_of(project, "first")
    assert len(set(first)) == TRIALS, "each trial has a path of its own"
    assert plans_of(project, "second") == first


def test_trials_without_a_seed_have_other_plans(project, leaves_nothing):
    project.write("pyproject.toml", (project.path / "pyproject.toml").read_text() + UNSEEDED)
    assert set(plans_of(project, "first")).isdisjoint(plans_of(project, "second"))
