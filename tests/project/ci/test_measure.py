"""``.ci/measure`` in a checkout whose environment is a stub: what it asks for, and what it refuses."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from pytest_ldos.measure.trial.artifacts import ScenarioFolder, write_trials
from pytest_ldos.scenario.model import ScenarioSpec
from pytest_ldos.scenario.options import OPTIONS
from tests.builders.command_line import run_ldos
from tests.builders.git import git
from tests.builders.stressors import wait_until
from tests.builders.trials import noisy_set

ROOT = Path(__file__).parents[3]
SCRIPTS = (".ci/measure", "pytest_ldos/cli/measure_commit.py")

PYTHON = """#!/bin/sh
printf '%s\\n' "$0" "${ROS_DISTRO:-no ROS 2}" >made_by
printf '%s\\n' "$@" "strict: ${LDOS_STRICT:-as on any CI}" >asked
for each in "$@"; do case $each in --ldos-stack=*) stack=${each#*=} ;; */result.json) result=$each ;; esac; done
echo "$stack ${ROS_DISTRO:-no ROS 2}" >>measured
[ -n "${STUB_EMPTY:-}" ] || echo '{}' >"$result"
mkdir -p .ldos/runs/1/baseline/trace '.ldos/runs/1/cpu load/trace' .ldos/runs/1/baseline/base .ldos/baselines/embedded/epyc
for name in baseline baseline.pinned baseline.calibration; do echo '{}' >.ldos/baselines/embedded/epyc/$name.json; done
for folder in baseline baseline/base 'cpu load'; do echo "$folder" >".ldos/runs/1/$folder/trials.json"; done
case ${STUB_STATUSES:-} in *"$stack="*) of_stack=${STUB_STATUSES#*"$stack="} && exit "${of_stack%% *}" ;; esac
exit "${STUB_STATUS:-0}"
"""
LDOS = """#!/bin/sh
if [ "$1" = join ]; then
  echo "$@" >joined
  for each in "$@"; do case $each in results/*) echo '{}' >"$each" ;; esac; done
  exit
elif [ "$1" = ros-packages ]; then
  [ -z "${STUB_NO_PACKAGES:-}" ] || exit 2
  echo "$AMENT_PREFIX_PATH" >ros-packages
  [ ! -r "${STUB_PACKAGES:-/none}" ] || echo "$STUB_PACKAGES"
  exit
fi
[ "$2" != "${STUB_BAD:-}" ] || exit 2
echo "$2" >"$6"
"""
MAKEFILE = """setup:
	@mkdir -p .venv/bin && cp ../python ../ldos .venv/bin
ros2-setup:
	@test -z "$$STUB_NO_PYTHON" && test -n "$$AMENT_PREFIX_PATH"
	@mkdir -p .venv-ros2/bin && cp ../python ../ldos .venv-ros2/bin
"""
ROS_SETUP = """
: "$AMENT_TRACE_SETUP_FILES" # is not set
ROS_DISTRO=jazzy AMENT_PREFIX_PATH=/opt/ros/jazzy
export ROS_DISTRO AMENT_PREFIX_PATH
"""


def install(folder: Path) -> None:
    """Leaves the script in a folder, with targets that make its environments."""
    for name in SCRIPTS:
        (folder / name).parent.mkdir(parents=True)
        shutil.copy(ROOT / name, folder / name)
    (folder / "Makefile").write_text(MAKEFILE, "utf-8")


@pytest.fixture
def checkout(tmp_path) -> Path:
    for name, text in (("python", PYTHON), ("ldos", LDOS)):
        (tmp_path / name).write_text(text, "utf-8")
        (tmp_path / name).chmod(0o755)
    folder = tmp_path / "project"
    install(folder)
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "first")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "second")
    return folder


@pytest.fixture
def measure(checkout) -> Callable[..., subprocess.CompletedProcess[str]]:
    head = git(checkout, "rev-parse", "HEAD").strip()

    def run(
        folder: Path = checkout, *arguments: str, script: str = ".ci/measure", **settings: str
    ) -> subprocess.CompletedProcess[str]:
        own = {"PATH": os.environ["PATH"], "GATE_COMMIT": head, "LDOS_ROOT": str(checkout.parent / "root")}
        environment = {**own, **settings}
        return subprocess.run(
            ["sh", script, *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run


def asked(checkout: Path) -> list[str]:
    return (checkout / "asked").read_text("utf-8").splitlines()


def test_commit_interleaved_with_its_base(measure, checkout):
    done = measure(GATE_BASE="main~1")
    assert done.returncode == 0, done.stderr
    base = git(checkout, "rev-parse", "HEAD~1").strip()
    arguments = asked(checkout)
    assert arguments[:6] == [
        "-m",
        "pytest",
        "-m",
        "baseline or cpu_load or msg_load or cpu_limit",
        "--ldos-trials",
        "10",
    ]
    assert arguments[6:9] == ["--ldos-max-trials", "30", f"--ldos-base={base}"]
    assert "results/result.json" in arguments
    assert "results/report.html" in arguments
    assert arguments[-1] == "strict: as on any CI"


def test_commit_compared_with_the_stored_baseline(measure, checkout):
    assert measure(GATE_SCENARIOS="busy_cell cpu_load+msg_load", GATE_TRIALS="5").returncode == 0
    assert "busy_cell or cpu_load+msg_load" in asked(checkout)
    assert not [each for each in asked(checkout) if "base=" in each]
    assert "--ldos-baselines=baselines" in asked(checkout)


def test_branch_with_a_detached_checkout(measure, checkout, tmp_path):
    """As workflows do: there is no branch but those of the origin."""
    git(checkout, "branch", "release/1.0", "HEAD~1")
    git(tmp_path, "clone", "--quiet", str(checkout), "clone")
    clone = tmp_path / "clone"
    git(clone, "checkout", "--quiet", "--detach", "HEAD")
    git(clone, "branch", "--quiet", "--delete", "--force", "main")
    assert measure(clone, GATE_BASE="release/1.0").returncode == 0
    assert f"--ldos-base={git(checkout, 'rev-parse', 'HEAD~1').strip()}" in asked(clone)


def test_new_branch_is_compared_with_its_parent(measure, checkout):
    assert measure(GATE_BASE="0" * 40).returncode == 0
    assert f"--ldos-base={git(checkout, 'rev-parse', 'HEAD~1').strip()}" in asked(checkout)


def test_a_baseline_is_recorded(measure, checkout):
    assert measure(GATE_RECORD="true", GATE_BASE="main~1").returncode == 0
    assert "--ldos-update-baseline" in asked(checkout)
    assert not [each for each in asked(checkout) if "base=" in each or "max" in each]
    # Else it would be a failure, on CI, that there is nothing to compare with.
    assert asked(checkout)[-1] == "strict: 0"
    # Where none is found, so that one that is in the repository does not take what is recorded.
    assert asked(checkout)[asked(checkout).index("--ldos-baselines") + 1] == "results/none"
    assert not (checkout / "results/none").exists()
    found = (checkout / "results/baselines").rglob("*.json")
    assert [file.relative_to(checkout / "results").as_posix() for file in found] == [
        "baselines/embedded/epyc/baseline.json"
    ]


def test_existing_baseline_is_not_recorded_again(measure, checkout):
    old = checkout / ".ldos/baselines/embedded/old/baseline.json"
    old.parent.mkdir(parents=True)
    old.write_text("{}", "utf-8")
    done = measure(GATE_RECORD="true")
    assert done.returncode == 0
    assert not (checkout / "results/baselines/embedded/old").exists()
    (aside,) = checkout.glob(".ldos/baselines-before-*")
    assert (aside / "embedded/old/baseline.json").read_text("utf-8") == "{}"
    assert f"were moved to .ldos/{aside.name}" in done.stderr


def test_earlier_runs_are_kept_and_not_packed(measure, checkout):
    old = checkout / ".ldos/runs/0/baseline"
    (old / "trace").mkdir(parents=True)
    (old / "trials.json").write_text("old", "utf-8")
    assert measure().returncode == 0
    assert measure(checkout, "pack").returncode == 0
    assert (old / "trials.json").read_text("utf-8") == "old"
    assert len([*(checkout / "results/traces").iterdir()]) == 2
    assert "trials/0/baseline/trials.json" not in packed(checkout)
    assert "trials/1/baseline/trials.json" in packed(checkout)


def packed(checkout: Path) -> dict[str, str]:
    folder = checkout / "results/packed"
    found = sorted(file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_text("utf-8") for file in found}


def test_packed_files_name_no_machine(measure, checkout):
    measure(GATE_RECORD="true")
    page = "https://github.com/arm-makers/arm/actions/runs/1/artifacts/2"
    for _ in range(2):
        assert measure(checkout, "pack", PAGE_URL=page).returncode == 0
        assert packed(checkout) == {
            "baselines/embedded/epyc/baseline.json": "{}\n",
            "result/exit-status": "0\n",
            "result/page-url": f"{page}\n",
            "result/result.json": "{}\n",
            "result/trace-url": "\n",
            "trials/1/baseline/base/trials.json": "baseline/base\n",
            "trials/1/baseline/trials.json": "baseline\n",
            "trials/1/cpu load/trials.json": "cpu load\n",
        }


def test_another_job_reaches_the_verdict_from_the_package(measure, checkout):
    """Each stack has a run of its own; the trials of a base that was interleaved lie below head's."""
    for stack in ("embedded", "ros2"):
        folder = ScenarioFolder(checkout / f".ldos/runs/of-{stack}/cpu_load")
        of_both = {"session": stack, "stack_kind": stack}
        write_trials(folder, noisy_set(1, commit="head", factors={"T1": 2.0}, **of_both))
        write_trials(folder.base, noisy_set(2, commit="base", **of_both))
    assert measure(checkout, "pack").returncode == 0
    places = [
        f"trials/of-{stack}/cpu_load/{base}trials.json" for stack in ("embedded", "ros2") for base in ("base/", "")
    ]
    assert list(packed(checkout)) == places
    for stack in ("embedded", "ros2"):
        done = run_ldos("report", checkout / f"results/packed/trials/of-{stack}", "--format", "json")
        (section,) = json.loads(done.stdout)["sections"]
        assert (section["verdict"], section["stack"]) == ("regressed", stack)
        assert [section[each]["commit"] for each in ("head", "base")] == ["head", "base"]


def test_without_results_nothing_is_packed(measure, checkout):
    assert measure(checkout, "pack").returncode == 0
    assert packed(checkout) == {}


def test_invalid_call_is_refused(measure, checkout):
    assert measure(checkout, "everything").returncode == 2
    assert not (checkout / "asked").exists()


def test_settings_are_shown(measure, checkout):
    done = measure(checkout, "--help")
    assert done.returncode == 0
    assert {"GATE_COMMIT", "GATE_BASE", "GATE_SCENARIOS", "TRACE_URL"} <= set(done.stdout.split())
    assert "set -eu" not in done.stdout
    assert not (checkout / "asked").exists()


def test_links_in_a_machines_folder_are_not_packed(measure, checkout):
    """Measured code can leave links; none is packed."""
    measure()
    (checkout / ".ldos/runs/1/linked").symlink_to("/etc")
    (checkout / ".ldos/runs/1/baseline/trials.json").unlink()
    (checkout / ".ldos/runs/1/baseline/trials.json").symlink_to("/etc/hostname")
    measure(checkout, "pack")
    assert "trials/1/baseline/trials.json" not in packed(checkout)
    assert not any(file.is_symlink() for file in (checkout / "results/packed").rglob("*"))


@pytest.mark.parametrize("status", [1, 2, 10, 11, 12])
def test_exit_status_is_pytests(measure, checkout, status):
    assert measure(STUB_STATUS=str(status)).returncode == status
    assert (checkout / "results/result.json").exists()


def test_nothing_measured_is_never_green(measure):
    done = measure(STUB_EMPTY="1")
    assert (done.returncode, done.stderr.splitlines()[1:]) == (11, ["measure: nothing was measured"])


def test_traces_are_exported_and_a_damaged_one_affects_no_other(measure, checkout):
    assert measure().returncode == 0
    traces = sorted((checkout / "results/traces").iterdir())
    assert [file.read_text("utf-8").strip() for file in traces] == [
        ".ldos/runs/1/baseline/trace",
        ".ldos/runs/1/cpu load/trace",
    ]
    shutil.rmtree(checkout / ".ldos/runs")
    done = measure(STUB_BAD=".ldos/runs/1/cpu load/trace")
    assert done.returncode == 0
    assert "a trace could not be exported: .ldos/runs/1/cpu load/trace" in done.stderr


def test_results_of_an_earlier_run_do_not_count(measure, checkout):
    assert measure().returncode == 0
    assert measure(STUB_EMPTY="1").returncode == 11
    assert not (checkout / "results/result.json").exists()


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"GATE_COMMIT": ""}, "GATE_COMMIT is no commit"),
        ({"GATE_COMMIT": "main"}, "GATE_COMMIT is no commit"),
        ({"GATE_COMMIT": "1f" * 20}, "GATE_COMMIT is no commit here"),
        ({"GATE_FROM": "nowhere"}, "GATE_FROM is no folder"),
        ({"GATE_FROM": "--upload-pack=touch owned"}, "GATE_FROM is no folder"),
        ({"GATE_FROM": "ext::sh -c touch% owned"}, "GATE_FROM is no folder"),
        ({"GATE_FROM": "/"}, "GATE_FROM is no checkout"),
        ({"GATE_COMMIT": "$(touch owned)"}, "GATE_COMMIT is no commit"),
        ({"GATE_BASE": "nowhere"}, "GATE_BASE is no revision here"),
        ({"GATE_BASE": "--output=owned"}, "GATE_BASE is no revision here"),
        ({"GATE_BASE": "$(touch owned)"}, "GATE_BASE is no revision here"),
        ({"GATE_SCENARIOS": "baseline; touch owned"}, "what is no name of a scenario"),
        ({"GATE_SCENARIOS": "baseline -p x"}, "what is no name of a scenario"),
        ({"GATE_SCENARIOS": " "}, "GATE_SCENARIOS names no scenario"),
        ({"GATE_TRIALS": "ten"}, "GATE_TRIALS is no number"),
        ({"GATE_MINUTES": "two"}, "GATE_MINUTES is no number"),
        ({"GATE_MINUTES": "10", "GATE_BASE": "main~1"}, "this may take about 40 min, and the job has 10"),
        ({"GATE_MINUTES": "10", "GATE_TRIALS": "400"}, "and the job has 10"),
        ({"GATE_MINUTES": "40", "GATE_BASE": "main~1", "GATE_STACK": "both"}, "about 80 min, and the job has 40"),
        ({"GATE_STACK": "gazebo"}, "the stack is neither ros2 nor embedded"),
        ({"GATE_STACK": "$(touch owned)"}, "the stack is neither ros2 nor embedded"),
        ({"GATE_MAX_TRIALS": "-1"}, "GATE_MAX_TRIALS is no number"),
    ],
)
def test_refused_request_is_not_measured(measure, checkout, settings, reason):
    done = measure(**settings)
    assert done.returncode == 2
    assert reason in done.stderr
    assert not (checkout / "asked").exists()
    assert not (checkout / "owned").exists()


def test_result_for_the_comment_is_written(measure, checkout):
    """The result is where the workflow takes it from."""
    assert measure().returncode == 0
    assert json.loads((checkout / "results/result.json").read_text("utf-8")) == {}


SOURCED = {"ROS_DISTRO": "jazzy", "AMENT_PREFIX_PATH": "/home/robot/ws/install"}


def made_by(checkout: Path) -> list[str]:
    """The interpreter that measured, and the ROS 2 that was sourced."""
    return (checkout / "made_by").read_text("utf-8").splitlines()


def stack(checkout: Path) -> str:
    (found,) = [each for each in asked(checkout) if each.startswith("--ldos-stack=")]
    return found.partition("=")[2]


def leave(checkout: Path, name: str, text: str) -> None:
    """A file of the machine."""
    file = checkout.parent / "root" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


def test_a_machine_without_ros_measures_the_embedded_stack(measure, checkout):
    done = measure()
    assert (done.returncode, stack(checkout)) == (0, "embedded")
    assert made_by(checkout) == [".venv/bin/python", "no ROS 2"]
    assert "--ldos-build" not in asked(checkout)
    assert "measure: the stack is embedded\n" in done.stderr


@pytest.mark.parametrize("distros", [["jazzy"], ["humble", "jazzy"]])
def test_a_machine_with_ros_measures_it_built_and_sourced(measure, checkout, distros):
    for name in distros:
        leave(checkout, f"opt/ros/{name}/setup.sh", ROS_SETUP if name == "jazzy" else "exit 9")
    done = measure(GATE_BASE="main~1")
    assert done.returncode == 0, done.stderr
    assert stack(checkout) == "ros2"
    assert "--ldos-build" in asked(checkout)
    assert made_by(checkout) == [".venv-ros2/bin/python", "jazzy"]
    assert not (checkout / ".venv").exists()
    assert (checkout / "results/traces/1.pftrace").exists()


def test_sourced_ros_is_unchanged(measure, checkout):
    leave(checkout, "opt/ros/jazzy/setup.sh", "exit 9")
    assert measure(**SOURCED).returncode == 0
    assert (stack(checkout), made_by(checkout)[0]) == ("ros2", ".venv-ros2/bin/python")


def test_named_but_not_sourced_ros_is_not_used(measure, checkout):
    """As in ROS's container images."""
    assert measure(ROS_DISTRO="jazzy").returncode == 0
    assert stack(checkout) == "embedded"


@pytest.mark.parametrize(
    ("file", "text", "chosen"),
    [
        ("pyproject.toml", '[tool.ldos]\nstack = "embedded"\n', "embedded"),
        ("pyproject.toml", '[tool.ldos.stack]\nkind = "embedded"\n', "embedded"),
        ("pyproject.toml", '[tool.ldos.stack]\nkind = "auto"\n', "ros2"),
        ("pyproject.toml", "[tool.ldos.stack.faults]\nplanning_delay_ms = 6\n", "ros2"),
        ("pyproject.toml", "[project]\n", "ros2"),
        ("ldos.toml", '[stack]\nkind = "embedded"\n', "embedded"),
        ("ldos.toml", '\ufeff[stack]\nkind = "embedded"\n', "embedded"),
    ],
)
def test_repository_settings_have_precedence_over_the_machine(measure, checkout, file, text, chosen):
    (checkout / file).write_text(text, "utf-8")
    assert measure(**SOURCED).returncode == 0
    assert stack(checkout) == chosen


def test_own_launch_file_selects_ros(measure, checkout):
    """So that it is never the embedded stack that is measured in its place."""
    (checkout / "pyproject.toml").write_text('[tool.ldos.stack]\nlaunch_file = "arm.launch.py"\n', "utf-8")
    measure()
    assert stack(checkout) == "ros2"


def test_settings_that_cannot_be_read_are_no_choice(measure, checkout):
    (checkout / "pyproject.toml").write_text("[tool.ldos\n", "utf-8")
    done = measure()
    assert (done.returncode, (checkout / "asked").exists()) == (2, False)
    assert "[tool.ldos.stack] cannot be read" in done.stderr


def test_request_has_precedence_over_all_settings(measure, checkout):
    (checkout / "pyproject.toml").write_text('[tool.ldos]\nstack = "ros2"\n', "utf-8")
    assert measure(GATE_STACK="embedded", **SOURCED).returncode == 0
    assert stack(checkout) == "embedded"
    assert "--ldos-build" not in asked(checkout)


@pytest.mark.parametrize("how", ["asked for", "chosen by the bootstrap"])
def test_missing_ros_is_not_replaced_by_another_stack(measure, checkout, how):
    """pytest is asked for ROS 2 all the same: it reports what is missing, as infra."""
    if how != "asked for":
        leave(checkout, "etc/ldos-lab/stack", "ros2\n")
    done = measure(**({"GATE_STACK": "ros2"} if how == "asked for" else {}), STUB_STATUS="11")
    assert done.returncode == 11
    assert (stack(checkout), made_by(checkout)[0]) == ("ros2", ".venv/bin/python")
    assert "--ldos-build" in asked(checkout)


def test_failed_environment_is_infra(measure, checkout):
    done = measure(**SOURCED, STUB_NO_PYTHON="1")
    assert (done.returncode, (checkout / "asked").exists()) == (11, False)
    assert "measure: make ros2-setup failed: the ros2 stack cannot be measured\n" in done.stderr


@pytest.mark.parametrize(
    "settings",
    [
        {"GATE_MINUTES": "180", "GATE_BASE": "main~1"},
        {"GATE_MINUTES": "10", "GATE_SCENARIOS": "baseline", "GATE_BASE": "main~1"},
        {"GATE_MINUTES": "8", "GATE_RECORD": "true"},
    ],
)
def test_measurement_fits_the_jobs_time(measure, checkout, settings):
    assert measure(**settings).returncode == 0
    assert (checkout / "asked").exists()


BOTH = {"GATE_STACK": "both", **SOURCED}


def lines(file: Path) -> list[str]:
    return file.read_text("utf-8").splitlines()


def test_both_stacks_are_measured_each_in_its_environment_and_joined(measure, checkout):
    leave(checkout, "opt/ros/jazzy/setup.sh", ROS_SETUP)
    done = measure(GATE_STACK="both", GATE_BASE="main~1")
    assert done.returncode == 0, done.stderr
    assert "measure: the stack is ros2 and embedded\n" in done.stderr
    # ROS 2 is not sourced where the embedded stack runs.
    assert lines(checkout / "measured") == ["ros2 jazzy", "embedded no ROS 2"]
    assert "--ldos-build" not in asked(checkout)
    joined = "ros2=results/ros2/result.json embedded=results/embedded/result.json"
    assert f"join {joined} " in (checkout / "joined").read_text("utf-8")
    assert (checkout / "results/result.json").is_file()
    assert (checkout / "results/report.html").is_file()
    assert measure(checkout, "pack").returncode == 0
    assert "result/result.json" in packed(checkout)


@pytest.mark.parametrize(
    ("ros2", "embedded", "status"),
    [(10, 0, 10), (0, 10, 10), (11, 10, 10), (12, 11, 11), (1, 10, 1), (10, 1, 1), (0, 0, 0)],
)
def test_worse_of_both_stacks_decides(measure, ros2, embedded, status):
    assert measure(**BOTH, STUB_STATUSES=f"ros2={ros2} embedded={embedded} ").returncode == status


def test_both_without_ros_is_infra_and_the_other_is_measured(measure, checkout):
    done = measure(GATE_STACK="both", STUB_STATUSES="ros2=11 ")
    assert done.returncode == 11
    assert lines(checkout / "measured") == ["ros2 no ROS 2", "embedded no ROS 2"]


def test_both_stacks_with_one_failed_environment(measure, checkout):
    done = measure(**BOTH, STUB_NO_PYTHON="1")
    assert done.returncode == 11
    assert [line.split()[0] for line in lines(checkout / "measured")] == ["embedded"]
    assert "make ros2-setup failed" in done.stderr
    assert (checkout / "results/result.json").is_file(), "the other's result, and that this one is missing"


def test_a_machine_can_be_for_both(measure, checkout):
    leave(checkout, "etc/ldos-lab/stack", "both\n")
    assert measure(**SOURCED).returncode == 0
    assert len(lines(checkout / "measured")) == 2


def test_a_baseline_of_both_is_recorded(measure, checkout):
    assert measure(**BOTH, GATE_RECORD="true").returncode == 0
    assert (checkout / "results/baselines/embedded/epyc/baseline.json").is_file()
    assert len([*checkout.glob(".ldos/baselines-before-*")]) == 0


# --- as `ldos measure` calls it: in the environment that it is installed in -------------------------


@pytest.fixture
def installed(checkout, measure):
    """An environment with pytest-ldos, and nothing that make could be asked for."""
    (checkout / "Makefile").unlink()
    folder = checkout.parent / "env/bin"
    folder.mkdir(parents=True)
    for name in ("python", "ldos"):
        shutil.copy(checkout.parent / name, folder)

    def run(**settings: str) -> subprocess.CompletedProcess[str]:
        return measure(GATE_BIN=str(folder), **settings)

    return run


def test_environment_with_pytest_ldos_is_sufficient(installed, checkout):
    leave(checkout, "opt/ros/jazzy/setup.sh", ROS_SETUP)
    ours = checkout.parent / "ours.sh"
    ours.write_text("ROS_DISTRO=jazzy-with-ours\n", "utf-8")
    done = installed(GATE_BASE="main~1", STUB_PACKAGES=str(ours))
    assert done.returncode == 0, done.stderr
    assert lines(checkout / "measured") == ["ros2 jazzy-with-ours"]
    assert lines(checkout / "ros-packages") == ["/opt/ros/jazzy"], "they are built over the ROS 2 that is sourced"
    assert made_by(checkout)[0].endswith("/env/bin/python")
    assert (checkout / "results/traces/1.pftrace").exists()


def test_unwritable_results_are_named(measure, checkout):
    assert measure().returncode == 0
    done = subprocess.run(
        ["sh", "-c", "ulimit -f 0; exec sh .ci/measure pack"],
        cwd=checkout,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 11
    assert "results cannot be written: [Errno 27] File too large" in done.stderr
    assert "Traceback" not in done.stderr


def test_links_in_results_are_replaced_and_not_followed(measure, checkout):
    outside = checkout.parent / "outside"
    outside.mkdir()
    (checkout / "results").symlink_to(outside)
    assert measure().returncode == 0
    assert not (checkout / "results").is_symlink()
    (checkout / "results/packed").symlink_to(outside)
    assert measure(checkout, "pack").returncode == 0
    assert not any(outside.iterdir())
    assert "result/result.json" in packed(checkout)


def test_missing_program_is_infra(installed, checkout):
    (checkout.parent / "env/bin/python").unlink()
    done = installed()
    assert done.returncode == 11
    assert "python cannot be run: No such file or directory" in done.stderr
    assert "Traceback" not in done.stderr


def test_interrupted_measurement_leaves_no_traceback(checkout):
    """A cancelled job gets SIGINT, and so do the programs that it runs."""
    waiting = "#!/bin/sh\necho begun >begun\nexec sleep 60\n"
    folder = checkout.parent / "env/bin"
    folder.mkdir(parents=True)
    for name in ("python", "ldos"):
        (folder / name).write_text(waiting, "utf-8")
        (folder / name).chmod(0o755)
    environment = {"PATH": os.environ["PATH"], "GATE_COMMIT": git(checkout, "rev-parse", "HEAD").strip()}
    with subprocess.Popen(
        ["sh", ".ci/measure"],
        cwd=checkout,
        env={**environment, "GATE_BIN": str(folder), "LDOS_ROOT": str(checkout)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        wait_until((checkout / "begun").exists)
        os.killpg(running.pid, signal.SIGINT)
        _, errors = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "Traceback" not in errors


def test_sourced_packages_are_not_sourced_again(installed, checkout):
    assert installed(**SOURCED).returncode == 0
    assert lines(checkout / "measured") == ["ros2 jazzy"]


def test_packages_that_cannot_be_built_are_infra(installed, checkout):
    done = installed(**SOURCED, STUB_NO_PACKAGES="1")
    assert (done.returncode, (checkout / "asked").exists()) == (11, False)
    assert "the packages of pytest-ldos cannot be built" in done.stderr


def test_without_ros_none_of_its_packages_is_built(installed, checkout):
    assert installed().returncode == 0
    assert lines(checkout / "measured") == ["embedded no ROS 2"]
    assert not (checkout / "ros-packages").exists()


# --- another commit than what is checked out, which supplies the stack alone -------------------------


def commit_in(folder: Path, message: str) -> str:
    git(folder, "commit", "--quiet", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD").strip()


def versions(checkout: Path) -> list[str]:
    """Options that say which versions are measured."""
    return [each for each in asked(checkout) if each.startswith(("--ldos-head", "--ldos-base=", "--ldos-build"))]


@pytest.fixture
def fork(checkout) -> Path:
    """Another checkout, with a commit that the project lacks: in it, nothing is measured, and all is well."""
    git(checkout.parent, "clone", "--quiet", str(checkout), "fork")
    folder = checkout.parent / "fork"
    for name in SCRIPTS:
        (folder / name).write_text("exit 0\n", "utf-8")
    (folder / "Makefile").write_text("setup:\n\ttouch .venv\n", "utf-8")
    git(folder, "add", ".")
    commit_in(folder, "of the fork")
    return folder


def test_a_commit_that_is_not_checked_out(measure, checkout):
    first = git(checkout, "rev-parse", "HEAD~1").strip()
    assert measure(GATE_COMMIT=first).returncode == 0
    assert versions(checkout) == [f"--ldos-head={first}"]
    assert measure().returncode == 0
    assert versions(checkout) == []


def test_the_parent_of_the_commit_that_is_measured(measure, checkout):
    second = git(checkout, "rev-parse", "HEAD").strip()
    commit_in(checkout, "third")
    assert measure(GATE_COMMIT=second, GATE_BASE="0" * 40).returncode == 0
    first = git(checkout, "rev-parse", "HEAD~2").strip()
    assert versions(checkout) == [f"--ldos-base={first}", f"--ldos-head={second}"]


def test_ros_workspace_is_the_commits(measure, checkout):
    first = git(checkout, "rev-parse", "HEAD~1").strip()
    assert measure(GATE_COMMIT=first, **SOURCED).returncode == 0
    assert versions(checkout) == [f"--ldos-head={first}"]


def test_a_baseline_of_a_commit_that_is_not_checked_out(measure, checkout):
    first = git(checkout, "rev-parse", "HEAD~1").strip()
    assert measure(GATE_COMMIT=first, GATE_RECORD="true").returncode == 0
    assert {"--ldos-update-baseline", f"--ldos-head={first}"} <= set(asked(checkout))


@pytest.mark.parametrize("place", ["../fork", "absolute"])
def test_forks_commit_comes_from_its_checkout_and_its_settings_are_ignored(measure, checkout, fork, place):
    commit = git(fork, "rev-parse", "HEAD").strip()
    git(fork, "tag", "v9")
    given = str(fork) if place == "absolute" else place
    done = measure(GATE_COMMIT=commit, GATE_FROM=given, GATE_BASE="0" * 40)
    assert done.returncode == 0, done.stderr
    assert versions(checkout) == [f"--ldos-base={git(checkout, 'rev-parse', 'HEAD').strip()}", f"--ldos-head={commit}"]
    assert made_by(checkout)[0] == ".venv/bin/python"
    assert git(checkout, "for-each-ref", "--format=%(refname)").split() == ["refs/heads/main"], "nothing but the commit"
    assert not (fork / ".venv").exists()


def test_base_that_only_the_fork_has(measure, checkout, fork):
    base = git(fork, "rev-parse", "HEAD").strip()
    git(fork, "branch", "before")
    commit = commit_in(fork, "one more")
    for given in (base, "before"):
        assert measure(GATE_COMMIT=commit, GATE_FROM="../fork", GATE_BASE=given).returncode == 0
        assert versions(checkout)[0] == f"--ldos-base={base}"


def test_unknown_commit(measure, checkout, fork):
    done = measure(GATE_COMMIT="1f" * 20, GATE_FROM="../fork")
    assert (done.returncode, (checkout / "asked").exists()) == (2, False)
    assert "GATE_COMMIT is no commit here; fetch it, or name a checkout that has it (GATE_FROM)" in done.stderr


def test_shallow_fork_is_refused(measure, checkout, fork):
    git(checkout.parent, "clone", "--quiet", "--depth=1", fork.as_uri(), "shallow")
    done = measure(GATE_COMMIT=git(fork, "rev-parse", "HEAD").strip(), GATE_FROM="../shallow")
    assert (done.returncode, (checkout / "asked").exists()) == (2, False)
    assert "GATE_FROM is no checkout with the whole history" in done.stderr


@pytest.fixture
def tools(checkout) -> Path:
    """A checkout of pytest-ldos next to the project, which has none of it."""
    folder = checkout.parent / "our tools"
    install(folder)
    for name in (*SCRIPTS, "Makefile"):
        (checkout / name).unlink()
    return folder


ELSEWHERE = "../our tools/.ci/measure"


def test_a_script_of_another_checkout_brings_its_own_environment(measure, checkout, tools):
    first = git(checkout, "rev-parse", "HEAD~1").strip()
    done = measure(script=ELSEWHERE, GATE_COMMIT=first, GATE_BASE="main")
    assert done.returncode == 0, done.stderr
    assert made_by(checkout)[0] == f"{tools}/.venv/bin/python"
    assert (checkout / "results/traces/1.pftrace").exists()
    assert not (checkout / ".venv").exists()
    assert not (tools / "results").exists()
    assert measure(checkout, "pack", script=ELSEWHERE).returncode == 0
    assert "trials/1/baseline/base/trials.json" in packed(checkout)


def test_a_script_of_another_checkout_brings_its_ros_packages(measure, checkout, tools):
    ours = checkout.parent / "ours.sh"
    ours.write_text("ROS_DISTRO=jazzy-with-ours\n", "utf-8")
    done = measure(script=ELSEWHERE, STUB_PACKAGES=str(ours), **SOURCED)
    assert done.returncode == 0, done.stderr
    assert made_by(checkout) == [f"{tools}/.venv-ros2/bin/python", "jazzy-with-ours"]
    head = git(checkout, "rev-parse", "HEAD").strip()
    assert f"--ldos-head={head}" in asked(checkout), "it is built, and in an environment of its own"


def test_defaults_of_scripts_and_workflows_are_those_of_the_options():
    trials = str(OPTIONS["trials"].default)
    assert f'GATE_TRIALS", "{trials}"' in (ROOT / "pytest_ldos/cli/measure_commit.py").read_text("utf-8")
    assert f"_TRIALS: Final = {trials}\n" in (ROOT / ".ci/results/respond.py").read_text("utf-8")
    assert yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["inputs"]["trials"]["default"] == trials
    triggers = yaml.safe_load((ROOT / ".github/workflows/measure.yml").read_text("utf-8"))[True]
    assert triggers["workflow_call"]["inputs"]["trials"]["default"] == trials
    assert f"trials || '{trials}'" in (ROOT / ".github/workflows/request.yml").read_text("utf-8")
    assert str(ScenarioSpec(name="any").trials) == trials
