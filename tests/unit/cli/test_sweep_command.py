"""`ldos sweep` on a stack that needs no time."""

from __future__ import annotations

import json
import re
import resource

import pytest

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import BringUpFailed, ConfigurationError
from pytest_ldos.campaign.sweep import SweepFolder
from pytest_ldos.cli import starts
from pytest_ldos.host.availability import Availability
from pytest_ldos.host.lock import measuring_lock
from pytest_ldos.measure.trial import rig
from tests.builders.command_line import invoke_ldos, lines_of
from tests.fakes.rig import noisy, open_fake_rig

FOUR = ("--over", "stack.control_rate=250,500", "--over", "stack.faults.planning_delay=0,20ms", "--trials", "2")


@pytest.fixture
def ldos(monkeypatch, tmp_path):
    """Runs a command in an empty project; faults that `run` would report are raised."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(starts, "can_be_measured", lambda spec: Availability(True))
    monkeypatch.setattr(starts, "recording_available", lambda: Availability(True))

    def run(*arguments):
        return invoke_ldos("sweep", *arguments)

    return run


@pytest.fixture
def stack(monkeypatch):
    """Makes the command use made-up motions; some starts end otherwise."""

    def use(ends=None):
        starts = []

        def opened(spec, folder, **rest):
            starts.append(spec)
            if (reason := (ends or {}).get(len(starts))) is not None:
                raise reason
            script = noisy(len(starts), planning=1 + spec.faults.planning_delay_ms / 20)
            return open_fake_rig(spec, folder, script=script, on_waiting=rest.get("on_waiting"))

        monkeypatch.setattr(rig, "open_rig", opened)
        return starts

    return use


def test_grid_is_measured_with_progress_and_shown(ldos, stack, tmp_path):
    starts = stack()
    result = ldos(*FOUR)
    assert result.exit_code == 0
    assert len({(spec.control_rate_hz, spec.faults.planning_delay_ms) for spec in starts}) == len(starts) == 4
    (folder,) = tmp_path.glob(".ldos/sweeps/*/*")
    assert len(list(folder.glob("cells/*.json"))) == 4
    reported = lines_of(result.stderr)
    assert reported[0].startswith("sweep: 4 stack starts, about")
    assert [line.partition(": ")[2][:7] for line in reported if " of 4: " in line] == [
        f"{n} of 4:" for n in range(1, 5)
    ]
    assert sum("2 of 2 succeeded, T1" in line for line in reported) == 4
    assert any(line.endswith("s left") for line in reported)
    shown = lines_of(result.stdout)
    assert "250 0 valid 2 of 2 16 … 100 %" in shown
    assert shown[-1] == f"results: {folder.relative_to(tmp_path)}"
    assert not list(tmp_path.glob(".ldos/runs/*/*")), "what a start left is gone"


def test_interrupted_sweep_resumes_with_the_same_command(ldos, stack):
    stack({3: KeyboardInterrupt()})
    first = ldos(*FOUR)
    assert first.exit_code == 130
    assert "the same command resumes the sweep" in first.stderr
    starts = stack()
    second = ldos(*FOUR)
    assert second.exit_code == 0
    assert len(starts) == 2
    assert "2 of 4 starts are complete" in second.stderr
    assert "1 of 2: " in second.stderr


def test_full_disk_ends_it_with_saved_results(ldos, stack, tmp_path, monkeypatch):
    """The kernel refuses files of more than a few bytes while the second cell is kept."""
    stack()
    keep, limits = SweepFolder.keep, resource.getrlimit(resource.RLIMIT_FSIZE)

    def keep_on_full_disk(folder, record):
        is_full = len(folder.starts.files()) == 1
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000 if is_full else limits[0], limits[1]))
        try:
            keep(folder, record)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    monkeypatch.setattr(SweepFolder, "keep", keep_on_full_disk)
    result = ldos(*FOUR)
    assert result.exit_code == exit_codes.INVALID
    reported = " ".join(result.stderr.split())
    assert re.search(r"\.ldos/sweeps/\S+ cannot be written: ", reported)
    assert "or name another place; what was kept before is whole" in reported
    assert len(list(tmp_path.glob(".ldos/sweeps/*/*/cells/*"))) == 1
    monkeypatch.setattr(SweepFolder, "keep", keep)
    starts = stack()
    assert (ldos(*FOUR).exit_code, len(starts)) == (0, 3)


def test_a_damaged_start_is_set_aside_and_measured_again(ldos, stack, tmp_path):
    stack()
    ldos(*FOUR)
    damaged = next(tmp_path.glob(".ldos/sweeps/*/*/cells/*.json"))
    damaged.write_bytes(damaged.read_bytes()[:700])
    starts = stack()
    second = ldos(*FOUR)
    assert (second.exit_code, len(starts)) == (0, 1)
    assert "damaged, set aside and measured again: " in " ".join(second.stderr.split())
    assert f"{damaged.name}.damaged" in second.stderr


def test_finished_sweep_is_shown_during_another_measurement(ldos, stack):
    stack()
    first = ldos(*FOUR)
    starts = stack()
    with measuring_lock():
        second = ldos(*FOUR)
    assert (second.exit_code, starts) == (0, [])
    assert "was already complete" in second.stderr
    assert lines_of(second.stdout) == lines_of(first.stdout)
    assert ldos(*FOUR, "--fresh").exit_code == 0
    assert len(starts) == 4


def test_busy_machine_is_refused(ldos, stack):
    stack()
    with measuring_lock():
        result = ldos(*FOUR)
    assert result.exit_code == exit_codes.INVALID
    assert "another measuring session holds this machine" in result.stderr


def test_cells_that_do_not_start_are_reported_and_retried_on_request(ldos, stack):
    stack({2: BringUpFailed("it was not ready", remedy="look at the logs")})
    result = ldos(*FOUR, "--format", "json")
    assert result.exit_code == exit_codes.INVALID
    assert "infra: " in result.stderr
    assert "it was not ready" in result.stderr
    states = [cell["state"] for cell in json.loads(result.stdout)["cells"]]
    assert sorted(states) == ["infra", "valid", "valid", "valid"]
    starts = stack()
    assert ldos(*FOUR).exit_code == exit_codes.INVALID
    assert starts == []
    assert ldos(*FOUR, "--retry").exit_code == 0
    assert len(starts) == 1


def test_unavailable_load_is_skipped_if_the_scenario_allows_it(ldos, stack, monkeypatch, tmp_path):
    (tmp_path / "ldos.toml").write_text('[scenarios.baseline]\nunavailable = "skip"\n')
    asked = lambda spec: Availability(spec.stack.control_rate_hz > 300, "no permission", "be root")  # noqa: E731
    monkeypatch.setattr(starts, "can_be_measured", asked)
    stack()
    assert ldos(*FOUR).exit_code == 0
    (tmp_path / "ldos.toml").write_text("")
    assert ldos(*FOUR).exit_code == exit_codes.INVALID
    monkeypatch.setattr(starts, "can_be_measured", lambda spec: Availability(False, "no permission", "be root"))
    (tmp_path / "ldos.toml").write_text('[scenarios.baseline]\nunavailable = "skip"\n')
    assert ldos(*FOUR, "--fresh").exit_code == exit_codes.INVALID, "nothing was measured"


@pytest.mark.parametrize("suffix", ["html", "md", "json", "csv"])
def test_the_result_as_a_file(ldos, stack, tmp_path, suffix):
    stack()
    result = ldos("--over", "stack.control_rate=250,500", "--trials", "1", "--output", f"sweep.{suffix}")
    assert result.exit_code == 0
    assert (tmp_path / f"sweep.{suffix}").stat().st_size > 500
    assert f"report: sweep.{suffix}" in result.stdout


def test_the_scenario_and_its_load(ldos, stack, monkeypatch):
    from contextlib import contextmanager

    from pytest_ldos.measure.load import protocol as choose
    from pytest_ldos.measure.load.protocol import Load, LoadProof

    applied = []

    class Made:
        def __init__(self, spec):
            self.spec = spec
            self.proof = LoadProof(kind=spec.KIND, seconds=1.0, shortfall="too little" if spec.rate_hz > 600 else "")

    @contextmanager
    def apply(spec, site):
        applied.append(spec)
        yield Made(spec)

    monkeypatch.setitem(choose.IMPLEMENTATIONS, "dds_flood", Load(apply))
    stack()
    result = ldos("--scenario", "msg_load", "--over", "dds_flood.rate=500,700", "--trials", "1", "--format", "json")
    assert result.exit_code == exit_codes.INVALID
    assert sorted(spec.rate_hz for spec in applied) == [500, 700]
    assert [cell["state"] for cell in json.loads(result.stdout)["cells"]] == ["valid", "invalid"]
    assert "too little" in result.stderr


def test_own_metrics_are_accepted(ldos, stack, tmp_path):
    stack()
    (tmp_path / "mine.py").write_text(
        "def pytest_ldos_metrics():\n"
        "    from pytest_ldos import api\n"
        "    return [api.OwnMetric(name='plan_points', title='points of the plan', unit='',\n"
        "                          better=api.Better.LOWER, measure=lambda context, window: 10.0)]\n"
    )
    result = ldos("--over", "trials=1", "--metrics", "mine.py", "--format", "json")
    assert "plan_points" in json.loads(result.stdout)["cells"][0]["metrics"]


def test_addresses_are_listed(ldos):
    result = ldos("--addresses")
    assert result.exit_code == 0
    listed = lines_of(result.stdout)
    assert {"trials 10", "dds_flood.rate_hz 1000", "cpu_limit.cpus 1", "load.group", "stack.ros2.rmw"} <= set(listed)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "a sweep needs an axis"),
        (("--over", "dds_flood.rate"), "--over is 'dds_flood.rate'"),
        (("--over", "=1,2"), "--over is '=1,2'"),
        (("--over", "dds_flood.rate="), "has no values"),
        (("--over", "dds_flood.rate=1,,2"), "a value that is empty"),
        (("--over", "dds_flood.rate=1;;2"), "a value that is empty"),
        (("--over", "dds_flod.rate=1"), "did you mean 'dds_flood.rate'?"),
        (("--over", "dds_flood.rate=1", "--over", "dds_flood.rate_hz=2"), "is swept twice"),
        (("--over", "dds_flood.rate=1,1"), "is there twice"),
        (("--over", "dds_flood.rate=1,-5"), "dds_flood.rate_hz=-5: a flood at -5 Hz"),
        (("--over", "dds_flood.rate=fast"), "it must be a number"),
        (("--over", "trials=2", "--scenario", "basline"), "did you mean 'baseline'?"),
        (("--over", "trials=2", "--output", "x.pdf"), "x.pdf has no format of a sweep"),
        (("--over", "trials=2", "--output", "none/x.md"), "cannot be written"),
        (("--over", "trials=2", "--name", "../x"), "a sweep cannot be called '../x'"),
        (("--over", f"dds_flood.rate={','.join(map(str, range(1, 1002)))}"), "1001 cells would take about"),
        (("--over", "trials=90000,100000"), "would take about 238 hours"),
        (("--over", "trials=20,40", "--max-hours", "0.01"), "are allowed"),
    ],
)
def test_invalid_axes_are_refused_before_starting(ldos, stack, tmp_path, arguments, message):
    starts = stack()
    with pytest.raises(ConfigurationError) as caught:
        ldos(*arguments)
    assert message in str(caught.value)
    assert starts == []
    assert not (tmp_path / ".ldos").exists()


def test_values_that_contain_commas():
    assert starts.parse_axis("cpu_limit.cpus=0;0,1").values == ("0", "0,1")
