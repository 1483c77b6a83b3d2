"""A locale that knows ASCII alone, where Python is told to believe it."""

from __future__ import annotations

import subprocess
import sys

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def test_a_run_and_its_report_need_no_other_locale(project, leaves_nothing):
    """`lttng --version` says its authors' names with letters that are none of ASCII, our reports have ``≈`` and ``…``."""
    for name in ("LANG", "LC_CTYPE"):
        project.environment.pop(name, None)
    project.environment |= ASCII
    locale = "import locale; print(locale.getpreferredencoding())"
    code = subprocess.run([sys.executable, "-c", locale], env=project.environment, capture_output=True, check=True)
    assert b"ANSI_X3.4" in code.stdout
    code, output = project.run("--ldos-trials=1", "--ldos-warmup=0", "--ldos-report=Größe/report.html")
    assert code == 0, output
    assert (project.path / "Größe" / "report.html").is_file()
    for arguments in (["report", "latest"], ["doctor"], ["--help"]):
        command = [sys.executable, "-c", "from pytest_ldos.cli.main import run; run()", *arguments]
        done = subprocess.run(command, cwd=project.path, env=project.environment, capture_output=True, check=False)
        said = (done.stdout + done.stderr).decode()
        assert "Traceback" not in said
        assert done.returncode in {0, 1}, said
    assert "trials succeeded" in output
