"""A flood over real DDS, counted at its receiver."""

from __future__ import annotations

import time

import psutil
import pytest

from pytest_ldos.dds.domain import claim_domain
from pytest_ldos.errors import ConfigurationError, LoadFailed
from pytest_ldos.load import dds_flood
from pytest_ldos.load.dds_flood import run_flood
from pytest_ldos.load.protocol import LoadSite, proof_to_dict
from pytest_ldos.scenario.loads import DdsFloodSpec
from tests.fakes.rig import FakeRecorder


@pytest.fixture
def site(tmp_path):
    with claim_domain() as domain:
        yield LoadSite(domain=domain, recorder=FakeRecorder(tmp_path / "trace"), log_directory=tmp_path)


def flooders() -> list[psutil.Process]:
    return [process for process in psutil.process_iter() if process.name().startswith("flood_")]


def wait_until(condition) -> None:
    deadline = time.monotonic() + 15
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.02)


def test_what_arrives_is_what_was_asked_for(site):
    with run_flood(DdsFloodSpec(publishers=2, rate_hz=200, size_bytes=64), site) as flood:
        wait_until(lambda: flood.proof.seconds > 2.0)
        proof = flood.proof
    assert proof.requested_hz == 400
    assert proof.rate_hz == pytest.approx(400, rel=0.05)
    assert proof.shortfall == ""
    assert "2 publishers, 64 bytes" in proof.describe()
    assert proof_to_dict(proof)["rate_hz"] == proof.rate_hz
    assert flooders() == []


def test_a_publisher_that_dies_is_a_shortfall(site):
    with run_flood(DdsFloodSpec(publishers=2, rate_hz=200), site) as flood:
        next(process for process in flooders() if process.name() == "flood_publisher").kill()
        wait_until(lambda: bool(flood.proof.shortfall))
        wait_until(lambda: "SIGKILL" in flood.proof.shortfall)


def test_a_rate_that_is_not_reached_is_a_shortfall(site):
    flood = dds_flood.RunningFlood.__new__(dds_flood.RunningFlood)
    flood.spec = DdsFloodSpec()
    assert flood._shortfall(3961) == ""
    assert flood._shortfall(2000) == "the flood reached 2000 of 4000 msg/s"


def test_a_flood_that_never_arrives_says_so(site, monkeypatch):
    def elsewhere(module: str, *, domain: int, **parameters: object) -> list[str]:
        return command(module, domain=domain + (module == "flood_publisher"), **parameters)

    command = dds_flood._command
    monkeypatch.setattr(dds_flood, "_command", elsewhere)
    monkeypatch.setattr(dds_flood, "_READY_TIMEOUT_S", 1.0)
    with pytest.raises(LoadFailed, match="did not arrive within 1 s"), run_flood(DdsFloodSpec(publishers=1), site):
        pass
    assert flooders() == []


def test_a_slow_flood_ends_at_once(site):
    """Its publisher is not asleep until its next message is due."""
    with run_flood(DdsFloodSpec(publishers=1, rate_hz=0.5), site) as flood:
        arrived = flood.proof
        began = time.monotonic()
    assert time.monotonic() - began < 1.5
    assert arrived.requested_hz == 0.5


@pytest.mark.parametrize(
    "arguments",
    [
        {"publishers": 0},
        {"publishers": 33},
        {"rate_hz": 0},
        {"rate_hz": 1e9},
        {"size_bytes": 0},
        {"size_bytes": 1 << 30},
    ],
)
def test_floods_that_make_no_sense(arguments):
    with pytest.raises(ConfigurationError):
        DdsFloodSpec(**arguments)
