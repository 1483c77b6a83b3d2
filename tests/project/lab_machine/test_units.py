"""Units of systemd: what they call exists, systemd can read them, and a job is held in."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.builders.lab import LAB

UNITS = sorted(path for suffix in ("service", "timer") for path in LAB.rglob(f"*.{suffix}"))


def values(unit, key):
    lines = (LAB / unit).read_text().splitlines()
    return [line.partition("=")[2] for line in lines if line.startswith(f"{key}=")]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze comes with systemd")
def test_systemd_finds_no_fault(tmp_path):
    root = tmp_path / "root"
    for unit in UNITS:
        for line in unit.read_text().splitlines():
            if line.startswith("Exec"):
                program = root / line.partition("=")[2].replace("%i", "400000").lstrip("+").split()[0].lstrip("/")
                program.parent.mkdir(parents=True, exist_ok=True)
                program.touch(mode=0o755)
    folder = root / "etc/systemd/system"
    folder.mkdir(parents=True)
    for unit in UNITS:
        shutil.copy(unit, folder)
    for place in ("usr/lib/systemd/system", "lib/systemd/system"):
        shutil.copytree("/usr/lib/systemd/system", root / place, symlinks=True)
    (root / "etc/passwd").write_text("root:x:0:0::/:/bin/sh\nldos-job-400000:x:400000:400000::/:/bin/sh\n")
    names = [unit.name.replace("@", "@400000") for unit in UNITS]
    command = ["systemd-analyze", f"--root={root}", "verify", *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    reported = [line for line in done.stderr.splitlines() if "ldos" in line]
    assert (done.returncode, reported) == (0, []), done.stderr


def test_programs_of_units_are_installed_by_a_phase():
    text = "".join(path.read_text() for path in (LAB / "phases").iterdir())
    for unit in UNITS:
        for key in ("ExecStart", "ExecStartPre", "ExecStopPost"):
            for call in values(unit.relative_to(LAB), key):
                if "/runner/bin/" in call:  # of the runner's archive
                    continue
                name = call.lstrip("+").split()[0].rpartition("/")[2].removeprefix("runner-")
                assert name in text, call


def test_job_has_no_privileges_and_no_persistent_state():
    unit = "runner/ldos-job@.service"
    held = {
        "User": "ldos-job-%i",
        "NoNewPrivileges": "yes",
        "CapabilityBoundingSet": "",
        "ProtectSystem": "strict",
        "ReadWritePaths": " ".join(
            f"/var/lib/ldos-runner/%i/{place}" for place in ("home", "runner/_work", "runner/_diag")
        ),
        "ProtectHome": "yes",
        "PrivateTmp": "yes",
        "PrivateIPC": "yes",
        "KillMode": "control-group",
        "RestrictNamespaces": "yes",
    }
    assert {key: values(unit, key) for key in held} == {key: [value] for key, value in held.items()}
    assert "-/etc/ldos-lab/runner-token" in values(unit, "InaccessiblePaths")[0]
    assert "ACTIONS_RUNNER_HOOK_JOB_STARTED=/usr/local/lib/ldos-lab/job-started.sh" in values(unit, "Environment")
    # More milliseconds than a timer of .NET takes: a job that is to be debugged, before its hook, fails.
    longest = f"{2**31 - 1}"
    for name in ("TUNNEL_CONNECT_TIMEOUT_SECONDS", "CONNECTION_TIMEOUT"):
        assert f"ACTIONS_RUNNER_DAP_{name}={longest}" in values(unit, "Environment")
    assert [call for call in values(unit, "ExecStart") if call.startswith("+")] == []


def test_doctor_runs_with_a_jobs_limits():
    for limit in ("LimitRTPRIO", "LimitMEMLOCK"):
        assert values("health/ldos-health.service", limit) == values("runner/ldos-job@.service", limit) != []


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze comes with systemd")
@pytest.mark.parametrize(
    ("unit", "threshold"),
    [("runner/ldos-job@.service", 25), ("runner/ldos-runner.service", 70), ("tuning/ldos-tuning.service", 40)],
)
def test_exposure_of_services_is_limited(unit, threshold):
    """In tenths, as systemd counts: 100 is a service without any restriction."""
    command = [
        "systemd-analyze",
        "security",
        "--offline=yes",
        "--no-pager",
        f"--threshold={threshold}",
        str(LAB / unit),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-300:] + done.stderr
