"""Real full and read-only disks: small file systems in a private mount namespace."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from pytest_ldos.base import exit_codes
from pytest_ldos.base.series import Invalid
from pytest_ldos.measure.trial.artifacts import read_trials
from tests.builders.namespaces import in_namespaces

KEPT = re.compile(r"what was measured so far is kept in (\S+trials\.json)")


def run_on(project, script: str, *arguments: str) -> tuple[int, str]:
    """A run behind a script that mounts something in the project's folder."""
    command = in_namespaces(script, project.command("--ldos-warmup=0", *arguments))
    done = subprocess.run(
        command, cwd=project.path, env=project.environment, capture_output=True, text=True, check=False, timeout=300
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.acceptance
def test_a_disk_that_the_trace_fills(project, leaves_nothing, temporary):
    """The first trial's record has room; the tracer then cannot write, and says so in its log alone."""
    code, output = run_on(project, "mkdir .ldos; mount -t tmpfs -o size=2m none .ldos", "--ldos-trials=3")
    assert code == exit_codes.INVALID, output
    assert "Traceback" not in output
    assert "infra" in output
    assert "trials.json cannot be written: No space left on device" in output
    assert re.search(r"make room on \S+/\.ldos: \S+ kB are needed and 0 B are free", output)
    assert re.search(r"trace and record of 3 trials take about \S+ MB", output)
    kept = KEPT.search(output)
    assert kept is not None, output
    trials = read_trials(kept[1])
    assert [trial.outcome for trial in trials.trials] == ["success"] * len(trials.trials)
    assert len(trials.trials) >= 2
    assert {trial.measurements["T1"].value for trial in trials.trials} == {
        Invalid("the trace is not whole: No space left on device")
    }
    for file in temporary.glob("ldos-kept-*/*"):
        file.unlink()
        file.parent.rmdir()


@pytest.mark.starts_nothing
@pytest.mark.parametrize(
    ("script", "printed"),
    [
        pytest.param(
            "mkdir .ldos; mount -t tmpfs -o ro none .ldos", "Read-only file system", marks=pytest.mark.acceptance
        ),
        ("mkdir .ldos; mount -t tmpfs -o size=4k,nr_inodes=2 none .ldos", "No space left on device"),
    ],
)
def test_output_that_is_full_from_the_beginning(project, leaves_no_process, script, printed):
    code, output = run_on(project, script, "--ldos-trials=1")
    assert code == exit_codes.INVALID, output
    assert "Traceback" not in output
    assert re.search(rf"\.ldos/\S+ cannot be written: {printed}", output), output
    assert "name another place" in output


FULL_LATER = """
import pytest

@pytest.fixture
def ldos_stack_spec(ldos_stack_spec, tmp_path_factory):
    import tempfile
    from pathlib import Path
    folder = Path(tempfile.gettempdir())
    for number in range(10_000):
        try:
            (folder / f"fill-{number}").touch()
        except OSError:
            return ldos_stack_spec
"""


@pytest.mark.starts_nothing
def test_a_temporary_folder_that_becomes_full(project, temporary):
    project.write("conftest.py", FULL_LATER)
    script = f"mount -t tmpfs -o size=1m,nr_inodes=100 none {temporary}"
    code, output = run_on(project, script, "--ldos-trials=1")
    assert code == exit_codes.INVALID, output
    assert "Traceback" not in output
    assert re.search(rf"{temporary}/ldos-(perf|lttng)-\S+ cannot be written: No space left on device", output), output
    assert "set TMPDIR to a folder elsewhere" in output
    assert f"make room on {temporary}, which can hold no more files" in output


@pytest.mark.acceptance
def test_a_report_and_a_history_on_a_full_disk(project, leaves_nothing):
    """All was measured: the verdict stays, what cannot be written is named, and the run is not green."""
    fill = "mkdir full; mount -t tmpfs -o size=32k none full"
    project.write("conftest.py", FILL_AT_END)
    code, output = run_on(
        project, fill, "--ldos-trials=1", "--ldos-report=full/report.html", "--ldos-history=full/history"
    )
    assert code == exit_codes.INVALID, output
    assert "Traceback" not in output
    assert re.search(r"report could not be written: .*No space left on device", output), output
    assert re.search(r"history: not written: .*No space left on device", output), output
    assert "are needed and 0 B are free" in output
    assert not list(Path(project.path / "full").rglob("*.html"))


FILL_AT_END = """
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session):
    try:
        with open("full/fill", "wb") as file:
            for _ in range(64):
                file.write(bytes(1024))
                file.flush()
    except OSError:
        pass
"""
