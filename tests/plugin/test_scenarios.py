"""Scenarios as data: markers, combinations, tests made of them, loads that are not possible here."""

from __future__ import annotations

import json

import pytest

FAKES = """
import pytest
from contextlib import contextmanager
from pytest_ldos.host.availability import Availability
from pytest_ldos.measure.load import protocol as choose
from pytest_ldos.measure.load.protocol import Load, LoadProof

ORDER = []

class Made:
    def __init__(self, spec):
        self.spec = spec
        self.proof = LoadProof(kind=spec.KIND, seconds=1.0, shortfall="")

@contextmanager
def apply(spec, site):
    ORDER.append(spec.KIND)
    yield Made(spec)

@pytest.fixture(autouse=True)
def made_up(monkeypatch):
    for kind in ("cpu_load", "dds_flood", "cpu_limit"):
        monkeypatch.setitem(choose.IMPLEMENTATIONS, kind, Load(apply))
    impossible = lambda spec, stack: Availability(False, "no permission for tc", "run as root")
    monkeypatch.setitem(choose.IMPLEMENTATIONS, "network_impairment", Load(apply, impossible))
"""

EVERY = f"""
{FAKES}

def test_scenario(ldos_scenario):
    ldos_scenario()
"""

SETTINGS = """
[tool.pytest.ini_options]
addopts = '-p no:cacheprovider --strict-markers'

[tool.ldos.scenarios.lossy]
unavailable = "{unavailable}"
loads = {{ network_impairment = {{ loss_percent = 5 }} }}
"""


def records(project) -> dict[str, dict]:
    files = project.path.glob(".ldos/runs/*/*/trials.json")
    return {document["spec"]["name"]: document for document in map(json.loads, (file.read_text() for file in files))}


def test_one_test_becomes_one_for_each_scenario(project, run):
    project.makepyfile(test_scenario=EVERY)
    result = run("-m", "cpu_limit or msg_load", "--ldos-trials=3", "--ldos-warmup=0")
    assert result.ret == 0
    result.assert_outcomes(passed=2, deselected=2)
    found = records(project)
    assert {name: list(record["spec"]["loads"]) for name, record in found.items()} == {
        "cpu_limit": ["cpu_limit"],
        "msg_load": ["dds_flood"],
    }


def test_combination_is_requested_with_a_plus(project, run):
    project.makepyfile(test_scenario=EVERY)
    result = run("-m", "msg_load+cpu_load", "--ldos-trials=3", "--ldos-warmup=0", "--strict-markers", "-rA")
    assert result.ret == 0
    result.assert_outcomes(passed=1, deselected=4)
    result.stdout.fnmatch_lines(["*test_scenario[[]cpu_load+msg_load]*"])
    assert list(records(project)["cpu_load+msg_load"]["spec"]["loads"]) == ["cpu_load", "dds_flood"]


def test_all_spellings_of_a_combination_are_one_test(project, run):
    with (project.path / "pyproject.toml").open("a") as file:
        file.write('\n[tool.ldos.scenarios."msg_load+cpu_load"]\ntrials = 7\n')
    project.makepyfile(test_scenario=EVERY)
    result = run("-m", "msg_load+cpu_load or cpu_load+msg_load", "--strict-markers", "--collect-only", "-q")
    found = [line for line in result.stdout.lines if "::" in line]
    assert found == ["test_scenario.py::test_scenario[cpu_load+msg_load]"]


def test_unrequested_combinations_are_skipped_with_a_reason(project, run):
    chosen = EVERY.replace("def test_scenario", "@pytest.mark.ldos_scenarios('+')\ndef test_scenario")
    project.makepyfile(test_scenario=chosen)
    result = run("-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*pytest -m cpu_load+msg_load*"])


def test_test_applies_its_scenarios_loads(project, run):
    project.makepyfile(
        test_scenario=FAKES
        + """
@pytest.mark.ldos_scenario("cpu_load+msg_load", trials=3)
def test_own(ldos_stack, ldos_loads, ldos_trials):
    with ldos_loads() as loads:
        trials = ldos_trials(ldos_stack)
    assert (loads["dds_flood"].spec.rate_hz, ORDER) == (1000, ["cpu_load", "dds_flood"])
    assert [load.KIND for load in trials.spec.loads] == ["cpu_load", "dds_flood"]

@pytest.mark.msg_load
def test_says_otherwise(ldos_stack, dds_flood, ldos_trials):
    with dds_flood(rate_hz=5) as flood:
        trials = ldos_trials(ldos_stack, n=2)
    assert (trials.spec.loads, flood.spec.publishers) == ((flood.spec,), 4)
"""
    )
    result = run("--ldos-warmup=0")
    result.assert_outcomes(passed=2)


WRONG_LOADS = {
    "dds_flood(rate=5)": "unknown argument of dds_flood: 'rate'",
    "dds_flood(rate_hz='fast')": "dds_flood rate_hz is 'fast'",
    "dds_flood(rate_hz=-1)": "a flood at -1 Hz",
    "cpu_load(workers=0)": "a load of 0 workers",
    "cpu_load(percent=500)": "a CPU load of 500 %",
    "cpu_limit(cpus='0,4000')": "cpu_limit cpus is '0,4000'; this process may use *",
}


def test_invalid_requests_for_loads(project, run):
    tests = (
        f"@pytest.mark.baseline(name='number_{number}')\ndef test_{number}(ldos_stack, {call.partition('(')[0]}):\n"
        f"    with {call}:\n        pass\n\n"
        for number, call in enumerate(WRONG_LOADS)
    )
    project.makepyfile(test_scenario="import pytest\n\n" + "".join(tests))
    result = run()
    assert result.ret == 1
    result.assert_outcomes(failed=len(WRONG_LOADS))
    for message in WRONG_LOADS.values():
        result.stdout.fnmatch_lines([f"*{message}*"])
    result.stdout.no_fnmatch_line("*Traceback*")


@pytest.mark.parametrize(("unavailable", "code"), [("error", 11), ("skip", 0)])
def test_unavailable_load_is_an_error_or_skipped(project, run, unavailable, code):
    (project.path / "pyproject.toml").write_text(SETTINGS.format(unavailable=unavailable))
    project.makepyfile(test_scenario=EVERY)
    result = run("-m", "lossy", "-rs")
    assert result.ret == code
    result.stdout.fnmatch_lines(["*no permission for tc*"])
    assert "run as root" in result.stdout.str()
    assert records(project) == {}, "nothing was started"


def test_deadlines_of_a_scenario_are_checked_without_a_baseline(project, run):
    with (project.path / "pyproject.toml").open("a") as file:
        file.write("\n[tool.ldos.scenarios.baseline]\ndeadlines = { planning = 5 }\n")
    result = run()
    assert result.ret == 10
    result.stdout.fnmatch_lines(
        ["*path 'planning' must take at most 5 ms in 99 % of its passages: it did in 0.0 % of *"]
    )


def test_changed_load_is_not_compared_and_keeps_the_baseline(project, run):
    project.makepyfile(test_scenario=EVERY)
    few = ("-m", "msg_load", "--ldos-warmup=0", "--ldos-trials=2")
    first = run(*few)
    assert first.ret == 0
    with (project.path / "pyproject.toml").open("a") as file:
        file.write("\n[tool.ldos.scenarios.msg_load.loads]\ndds_flood = { rate_hz = 500 }\n")
    second = run(*few)
    second.stdout.fnmatch_lines(["*msg_load: not_comparable*", "*dds_flood.rate_hz is 500 here, 1000 there*"])
    assert "recorded as" not in second.stdout.str()
    assert run(*few, "--ldos-strict").ret == 12


def test_scenario_named_in_a_mark_is_used(project, run):
    project.makepyfile(
        test_scenario=f"{FAKES}\n@pytest.mark.msg_load(trials=3)\ndef test_own(ldos_scenario):\n    ldos_scenario()\n"
    )
    run("--ldos-warmup=0").assert_outcomes(passed=1)
    assert list(records(project)["msg_load"]["spec"]["loads"]) == ["dds_flood"]


def test_a_combination_with_an_unknown_part_names_the_nearest(run):
    result = run("-m", "cpu_load+msg_lod")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*unknown scenario in -m: 'msg_lod'*", "*did you mean 'msg_load'*"])
