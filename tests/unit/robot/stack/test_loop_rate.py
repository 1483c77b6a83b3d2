from __future__ import annotations

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.robot.stack.embedded import backend
from pytest_ldos.robot.stack.embedded.backend import EmbeddedBackend
from pytest_ldos.scenario.model import FaultSpec, StackSpec
from tests.fakes.rig import FakeRecorder


@pytest.mark.parametrize("spec", [StackSpec(control_rate_hz=2000), StackSpec(faults=FaultSpec(control_rate_hz=1500))])
def test_control_rate_beyond_the_embedded_loop_is_refused(spec, tmp_path, monkeypatch):
    monkeypatch.setattr(backend, "claim_domain", lambda: pytest.fail("it was refused too late"))
    with pytest.raises(ConfigurationError, match=r"control_rate_hz is .*00, and the embedded loop runs at 1000 Hz"):
        EmbeddedBackend(spec, recorder=FakeRecorder(tmp_path), log_directory=tmp_path).start()


def test_impossible_loop_rate_is_refused():
    with pytest.raises(ConfigurationError, match="between 1 and 20000"):
        StackSpec(control_rate_hz=50_000)
