"""Sweeps in tests: one test per cell, resumed, and distributed over workers."""

from __future__ import annotations

import itertools
import re
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest
from _pytest.compat import ascii_escaped

from pytest_ldos.campaign.sweep import CellState, all_sweeps
from pytest_ldos.plugin.settings import SweepCell, sweep_name
from tests.plugin.conftest import SETUP

SWEEP = """
import pytest

@pytest.mark.ldos_sweep("stack.control_rate", [250, 400, 500])
@pytest.mark.baseline(trials=2, warmup=0)
def test_reach(panda_stack, ldos_trials, ldos_gate, ldos_cell):
    assert panda_stack.spec.stack.control_rate_hz == ldos_cell["stack.control_rate_hz"]
    ldos_gate.check(ldos_trials(panda_stack))
"""

NODE = "test_scenario.py::test_reach[control_rate_hz={}]"

STAMPED = """
import contextlib, functools, os, time
from pathlib import Path
from pytest_ldos.measure.trial import rig

def stamp(what):
    with Path(os.environ["STAMPS"]).open("a") as file:
        file.write(f"{time.monotonic_ns()} {os.getpid()} {what}\\n")

inner = rig.open_rig

@contextlib.contextmanager
def stamped(spec, folder, **rest):
    stamp("begin")
    with inner(spec, folder, **rest) as made:
        yield made
    stamp("end")

rig.open_rig = stamped
"""


def test_cells_with_non_ascii_names_belong_to_one_sweep():
    """pytest escapes what is not ASCII in the name of a test."""
    cells = [SweepCell(axes=(), assignments={}, id=f"place={place}", moment=0) for place in ("Zürich", "大阪", "Bern")]
    items = [SimpleNamespace(nodeid=f"test_x.py::test_reach[{ascii_escaped(cell.id)}-a]") for cell in cells]
    names = {sweep_name(item, cell) for item, cell in zip(items, cells, strict=True)}
    assert names == {"test_x.py_test_reach-a"}


@pytest.fixture
def sweep(project, run):
    """The project's test is a sweep of four cells."""
    project.makepyfile(test_scenario=SWEEP)
    return run


def records(project):
    (folder, *_) = all_sweeps(project.path / ".ldos")
    return folder.records()


def test_each_combination_is_a_test_with_a_stored_result(project, run):
    project.makepyfile(
        test_scenario=SWEEP.replace("@pytest.mark.b", '@pytest.mark.ldos_sweep("trials", [1, 2])\n@pytest.mark.b')
    )
    result = run("-v")
    result.assert_outcomes(passed=6)
    found = records(project)
    grid = [(rate, trials) for rate in (250, 400, 500) for trials in (1, 2)]
    assert sorted(name for name, _ in found) == [f"baseline@stack.control_rate_hz={r},trials={n}" for r, n in grid]
    assert {record.state for record in found.values()} == {CellState.MEASURED}
    assert sum(len(record.trials.trials) for record in found.values()) == 9
    shown = result.stdout.str()
    order = list(dict.fromkeys(re.findall(r"::test_reach\[(control_rate_hz=\d+-trials=\d)\]", shown)))
    assert sorted(order) == [f"control_rate_hz={rate}-trials={trials}" for rate, trials in grid]
    assert order != sorted(order), "a drift would look like an effect"
    assert re.findall(r"^\[(\d)/6\] control_rate_hz=\d+, trials=\d: \d of \d succeeded", shown, re.MULTILINE) == list(
        "123456"
    )
    result.stdout.fnmatch_lines(["*ldos sweep test_scenario.py_test_reach*", "*control_rate_hz  trials  state*"])
    (folder,) = all_sweeps(project.path / ".ldos")
    assert {"report.html", "report.json"} <= {file.name for file in folder.path.iterdir()}


@pytest.mark.acceptance
def test_each_cell_has_a_baseline_of_its_own(sweep, project):
    sweep("--ldos-trials=10")
    names = {name for name, _ in records(project)}
    assert {file.stem for file in project.path.glob(".ldos/baselines/embedded/*/*.json")} == names
    slower = sweep("--ldos-trials=10", NODE.format(250), stack="noisy(2, planning=3.0)")
    assert slower.ret == 10
    slower.stdout.fnmatch_lines(["*scenario 'baseline@stack.control_rate_hz=250': regressed*"])
    assert [record.verdict for record in records(project).values()] == ["regressed"]


@pytest.mark.acceptance
def test_finished_sweep_is_shown_if_resumed_and_otherwise_measured_again(sweep, project):
    sweep()
    again = sweep("--ldos-resume", "-rs")
    again.assert_outcomes(skipped=3)
    again.stdout.fnmatch_lines(["*ldos sweep test_scenario.py_test_reach*", "*SKIPPED*measured before: no_baseline*"])
    assert len(all_sweeps(project.path / ".ldos")) == 1
    sweep().assert_outcomes(passed=3)
    assert len(all_sweeps(project.path / ".ldos")) == 2


@pytest.mark.acceptance
def test_a_cell_that_failed_fails_again_when_the_sweep_is_resumed(sweep):
    assert sweep(stack="lambda i: Motion(error_code=-31, message='no joints reach it')").ret == 10
    again = sweep("--ldos-resume")
    assert again.ret == 10
    again.assert_outcomes(errors=3)
    again.stdout.fnmatch_lines(["*0 of 2 trials succeeded*", "*measured before: not measured again*"])


@pytest.mark.acceptance
def test_another_definition_is_not_resumed(sweep, project):
    sweep()
    project.makepyfile(test_scenario=SWEEP.replace("trials=2", "trials=1"))
    sweep("--ldos-resume").assert_outcomes(passed=3)


@pytest.mark.acceptance
def test_cells_of_another_head_are_measured(sweep, project, repository):
    project.makepyprojecttoml("[tool.pytest.ini_options]\naddopts = '-p no:cacheprovider'\n" + SETUP)
    old, new = repository.commit(README="old"), repository.commit(README="new")
    one = (NODE.format(250), "--ldos-resume")
    sweep(*one, f"--ldos-head={old}").assert_outcomes(passed=1)
    sweep(*one, f"--ldos-head={old}").assert_outcomes(skipped=1)
    sweep(*one, f"--ldos-head={new}").assert_outcomes(passed=1)


@pytest.mark.acceptance
def test_killed_sweep_resumes(sweep, project):
    """SIGKILL, as soon as two cells are on disk."""
    sweep("--collect-only")
    killer = "\nfrom pathlib import Path\nimport os, signal\n\n"
    killer += "def pytest_runtest_logstart(nodeid):\n"
    killer += "    if len(list(Path('.ldos/sweeps').glob('*/*/cells/*.json'))) == 2:\n"
    killer += "        os.kill(os.getpid(), signal.SIGKILL)\n"
    plain = (project.path / "conftest.py").read_text()
    (project.path / "conftest.py").write_text(plain + killer)
    command = [sys.executable, "-m", "pytest", "-q"]
    done = subprocess.run(command, cwd=project.path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == -signal.SIGKILL, done.stdout
    before = records(project)
    assert len(before) == 2
    sweep("--ldos-resume").assert_outcomes(passed=1, skipped=2)
    after = records(project)
    assert len(after) == 3
    assert all(after[key] == record for key, record in before.items())


MIXED = """
import pytest
from pathlib import Path

@pytest.mark.ldos_sweep("stack.control_rate", [100, 200, 250, 400])
@pytest.mark.baseline(trials=1, warmup=0)
def test_reach(panda_stack, ldos_trials, ldos_cell):
    rate, is_first = ldos_cell["stack.control_rate_hz"], not Path("again").exists()
    if rate == 100 and is_first:
        pytest.skip("no permission for tc")
    if rate != 250:
        ldos_trials(panda_stack)
"""


@pytest.mark.acceptance
def test_unmeasured_cells_are_retried_if_the_sweep_is_resumed(sweep, project):
    """Four cells: one not permitted, one with a damaged record, one without measurements, one complete."""
    project.makepyfile(test_scenario=MIXED)
    sweep().assert_outcomes(passed=3, skipped=1)
    (folder,) = all_sweeps(project.path / ".ldos")
    damaged = next(file for file in folder.starts.files() if "=200." in file.name)
    damaged.write_text(damaged.read_text()[:100])
    (project.path / "again").touch()
    again = sweep("--ldos-resume", "-rs")
    again.assert_outcomes(passed=2, skipped=2)
    again.stdout.fnmatch_lines_random(
        ["*measured before: it succeeded*", "*measured before: invalid: the test made no trials*"]
    )
    found = {record.trials.spec.stack.control_rate_hz for record in records(project).values() if record.trials}
    assert found == {100, 200, 400}
    again.stdout.fnmatch_lines([f"damaged, set aside: *{damaged.name}.damaged"])
    assert len(damaged.with_name(f"{damaged.name}.damaged").read_text()) == 100


FULL_DISK = """
import resource
import pytest

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_logreport(report):
    if report.when != "teardown" or "rate_hz=500" not in report.nodeid:
        return (yield)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, limits[1]))  # no file may be longer
    try:
        return (yield)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
"""


@pytest.mark.acceptance
def test_full_disk_ends_the_session_with_saved_results(sweep, project):
    """The kernel refuses the record of the second cell of three."""
    sweep("--collect-only")
    conftest = project.path / "conftest.py"
    conftest.write_text(f"{conftest.read_text()}\n{FULL_DISK}")
    result = project.runpytest_subprocess("--ldos-trials=10", "-p", "no:cacheprovider", timeout=300)
    assert result.ret == 11
    shown = result.stdout.str() + result.stderr.str()
    assert "INTERNALERROR" not in shown
    assert re.search(r"\S+ cannot be written: File too large", shown)
    assert "or name another place; what was kept before is whole" in shown
    assert "the same command goes on from it: --ldos-resume" in shown
    kept = len(records(project))
    assert kept < 3
    assert not list(project.path.glob(".ldos/sweeps/*/*/cells/.*")), "no half of it"
    result.stdout.fnmatch_lines(["*ldos sweep test_scenario.py_test_reach*"])
    conftest.write_text(conftest.read_text().replace("12_000", "limits[0]"))
    rest = project.runpytest_subprocess("--ldos-trials=10", "--ldos-resume", timeout=300)
    rest.assert_outcomes(passed=3 - kept, skipped=kept)


@pytest.mark.acceptance
def test_a_sweep_of_combined_scenarios(project, run):
    project.makepyfile(
        test_scenario="""
        import pytest
        from contextlib import contextmanager
        from pytest_ldos.measure.load import protocol as choose
        from pytest_ldos.measure.load.protocol import Load, LoadProof

        class Made:
            def __init__(self, spec):
                self.spec = spec
                self.proof = LoadProof(kind=spec.KIND, seconds=1.0, shortfall="")

        @contextmanager
        def apply(spec, site):
            yield Made(spec)

        @pytest.fixture(autouse=True)
        def made_up(monkeypatch):
            for kind in ("cpu_load", "dds_flood"):
                monkeypatch.setitem(choose.IMPLEMENTATIONS, kind, Load(apply))

        @pytest.mark.ldos_sweep("dds_flood.rate", [100, 200])
        @pytest.mark.ldos_scenarios("+", "baseline")
        def test_all(ldos_scenario):
            ldos_scenario()

        @pytest.mark.ldos_sweep("load.group", ["stack", "own"])
        @pytest.mark.ldos_scenario("cpu_load+msg_load")
        def test_one(ldos_stack, ldos_loads, ldos_trials):
            with ldos_loads() as loads:
                assert {load.spec.group for load in loads.values()} == {ldos_stack.spec.loads[0].group}
                ldos_trials(ldos_stack)

        @pytest.mark.ldos_sweep("dds_flood.rate", [100])
        @pytest.mark.msg_load
        def test_forgets_the_load(ldos_stack, ldos_trials):
            ldos_trials(ldos_stack)
        """
    )
    result = run(
        "-m", "cpu_load+msg_load or baseline or ldos_scenario or msg_load", "--ldos-trials=2", "--ldos-warmup=0"
    )
    result.assert_outcomes(passed=7)
    found = {folder.path.parent.name: folder.records() for folder in all_sweeps(project.path / ".ldos")}
    assert {name: len(each) for name, each in found.items()} == {
        "test_scenario.py_test_all-cpu_load+msg_load": 2,
        "test_scenario.py_test_all-baseline": 2,
        "test_scenario.py_test_one": 2,
        "test_scenario.py_test_forgets_the_load": 1,
    }
    (forgot,) = found["test_scenario.py_test_forgets_the_load"].values()
    assert forgot.state is CellState.INVALID
    assert "another dds_flood.rate_hz than its cell has" in forgot.reason


@pytest.mark.acceptance
def test_a_cell_that_cannot_be_measured_is_kept_with_its_reason(project, run):
    project.makepyfile(test_scenario=SWEEP)
    project.makeconftest(
        "from contextlib import contextmanager\nfrom pytest_ldos.measure.trial import rig\n"
        "from pytest_ldos.base.errors import BringUpFailed\n"
        "@contextmanager\ndef none(*given, **more):\n"
        "    raise BringUpFailed('the stack did not start', remedy='look')\n    yield\nrig.open_rig = none\n"
    )
    result = project.runpytest_subprocess(timeout=300)
    assert result.ret == 11
    found = records(project)
    assert {record.state for record in found.values()} == {CellState.INFRA}
    assert all("the stack did not start" in record.reason for record in found.values())
    result.stdout.fnmatch_lines(["*250 *infra*"])


IMPOSSIBLE = {
    '@pytest.mark.ldos_sweep("dds_flod.rate", [1])': "unknown address 'dds_flod.rate'",
    '@pytest.mark.ldos_sweep("dds_flood.rate", [])': "swept over no values",
    '@pytest.mark.ldos_sweep("dds_flood.rate", "500")': "give a list of values",
    '@pytest.mark.ldos_sweep("dds_flood.rate")': "write it as @pytest.mark.ldos_sweep",
    '@pytest.mark.ldos_sweep(address="trials", values=[1])': "write it as @pytest.mark.ldos_sweep",
    '@pytest.mark.ldos_sweep("dds_flood.rate", [1, -1])': "dds_flood.rate_hz=-1: a flood at -1 Hz",
    '@pytest.mark.ldos_sweep("trials", [1])\n@pytest.mark.ldos_sweep("trials", [2])': "trials is swept twice",
    '@pytest.mark.ldos_sweep("load.group", ["own"])': "scenario 'baseline' has no load",
}


def test_invalid_marks_end_the_run_before_measuring(project, run):
    for number, marks in enumerate(IMPOSSIBLE):
        (project.path / f"test_{number}.py").write_text(
            f"import pytest\n\n{marks}\n@pytest.mark.baseline\ndef test_it(ldos_stack):\n    pass\n"
        )
    idle = 'import pytest\n\n@pytest.mark.ldos_sweep("trials", [1])\ndef test_it():\n    pass\n'
    (project.path / "test_idle.py").write_text(idle)
    result = run()
    assert result.ret == 2
    shown = result.stdout.str()
    assert [message for message in IMPOSSIBLE.values() if message not in shown] == []
    assert "test_idle.py::test_it is swept but measures no stack" in shown
    assert "Traceback" not in shown
    assert not (project.path / ".ldos").exists()


# --- workers ---------------------------------------------------------------------------


@pytest.fixture
def stamps(sweep, project, monkeypatch):
    """Runs the sweep with stacks that note when they began and ended, and in which process."""
    monkeypatch.setenv("STAMPS", str(project.path / "stamps.txt"))

    def runner(*arguments):
        sweep("--collect-only")
        conftest = project.path / "conftest.py"
        conftest.write_text(conftest.read_text() + STAMPED)
        result = project.runpytest_subprocess(*arguments, timeout=300)
        lines = (project.path / "stamps.txt").read_text().splitlines()
        return result, sorted((int(time), int(pid), what) for time, pid, what in map(str.split, lines))

    return runner


@pytest.mark.acceptance
def test_workers_on_one_machine_take_turns(stamps, project):
    result, stamped = stamps("--tx", "2*popen", "--dist", "load")
    result.assert_outcomes(passed=3)
    assert [what for *_, what in stamped] == ["begin", "end"] * 3
    assert all(begin[1] == end[1] for begin, end in zip(stamped[::2], stamped[1::2], strict=True)), "no two at once"
    assert len({pid for _, pid, _ in stamped}) == 2, "both worked"
    found = records(project)
    assert len(found) == 3
    held = sorted((record.began_ns, record.ended_ns) for record in found.values())
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(held))
    assert len(all_sweeps(project.path / ".ldos")) == 1, "the controller writes"
    result.stdout.fnmatch_lines(["*[[]3/3[]] control_rate_hz=*", "*ldos sweep test_scenario.py_test_reach*"])


@pytest.mark.acceptance
def test_workers_receive_completed_cells(stamps, project):
    first, _ = stamps(NODE.format(250), NODE.format(400))
    first.assert_outcomes(passed=2)
    second, stamped = stamps("-n", "2", "--ldos-resume")
    second.assert_outcomes(passed=1, skipped=2)
    assert [what for *_, what in stamped] == ["begin", "end"] * 3
    assert len(records(project)) == 3


@pytest.mark.acceptance
def test_workers_with_nothing_left_to_measure_show_the_table(sweep, project):
    sweep().assert_outcomes(passed=3)
    again = sweep("-n", "1", "--ldos-resume")
    again.assert_outcomes(skipped=3)
    again.stdout.fnmatch_lines(["*ldos sweep test_scenario.py_test_reach*", "*250 *valid*", "results: *"])
    assert len(all_sweeps(project.path / ".ldos")) == 1


@pytest.mark.acceptance
def test_workers_verdict_decides_the_session(sweep):
    sweep("--ldos-trials=10")
    result = sweep("--ldos-trials=10", "-n", "2", stack="noisy(2, planning=3.0)")
    assert result.ret == 10
    result.assert_outcomes(failed=3)


@pytest.mark.acceptance
def test_killed_worker_loses_only_its_cell(sweep, project, monkeypatch):
    sweep("--collect-only")
    conftest = project.path / "conftest.py"
    conftest.write_text(
        f"{conftest.read_text()}\nimport os, signal\n\ndef pytest_runtest_call(item):\n"
        "    if 'rate_hz=500' in item.nodeid and not os.environ.get('SPARED'):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert project.runpytest_subprocess("-n", "2", timeout=300).ret == 1
    assert len(records(project)) == 2
    monkeypatch.setenv("SPARED", "1")
    project.runpytest_subprocess("-n", "2", "--ldos-resume", timeout=300).assert_outcomes(passed=1, skipped=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "only a sweep (ldos_sweep), without other tests, can be spread"),
        pytest.param(
            ("-k", "test_reach", "--ldos-report=x.md"),
            "--ldos-report cannot be written by pytest-xdist's workers",
            marks=pytest.mark.acceptance,
        ),
    ],
)
def test_workers_measure_only_sweeps(sweep, project, arguments, message):
    project.makepyfile(test_other="def test_plain():\n    pass\n")
    result = sweep("-n", "1", *arguments)
    assert result.ret == 1
    assert message in result.stdout.str()
    assert not list(project.path.glob(".ldos/runs/*/*/trials.json"))
