"""Every kind of field and context of the real LTTng-UST, compared with babeltrace2."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from pytest_ldos.trace.ctf.read import read_trace
from tests.builders.needs import needs_lttng
from tests.oracles.agreement import Outcome, compare_with_babeltrace
from tests.oracles.babeltrace import why_unavailable

pytestmark = needs_lttng

SOURCE = Path(__file__).parents[3] / "native/shapes"
CONTEXTS = (
    *("vpid", "vtid", "procname", "pthread_id", "ip", "vuid", "vegid"),
    *("cgroup_ns", "ipc_ns", "mnt_ns", "net_ns", "pid_ns", "time_ns", "user_ns", "uts_ns"),
)
STEPS = 20


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> str:
    """A program with its own provider; its macros define functions that are used by address only."""
    built = tmp_path_factory.mktemp("shapes") / "shapes"
    flags = ["-O1", "-Wno-unused-function", f"-I{SOURCE}"]
    subprocess.run(["gcc", *flags, SOURCE / "shapes.c", "-o", built, "-llttng-ust", "-ldl"], check=True)
    return str(built)


@pytest.fixture
def recorded(session, program) -> Path:
    session.create(events="shapes:*", contexts=CONTEXTS)
    session.run(program, str(STEPS))
    session.stop()
    return session.directory


def test_fields_have_the_recorded_values(recorded):
    table = read_trace(recorded).events["shapes:all"]
    assert len(table) == STEPS
    row = {name: column[7] for name, column in table.columns.items()}
    expected: dict[str, Any] = {
        "tiny": -7,
        "small": 21,
        "large": -(7 << 40),
        "hex": 0x07070707,
        "network": 0x070E151C,
        "network_hex": 0x070E,
        "ratio": 1.75,
        "precise": 7 / 3,
        "text": "café",
        "three": [ord("n"), ord("o"), ord("d")],
        "label": "node",
        "numbers": [-1],
        "word": "ca",
        "state": 7,
        "payload_vpid": 255,
    }
    assert {name: row[name] for name in expected} == expected
    assert row["gid"][-1] == 255
    labels = [(label.name, label.first, label.last) for label in table.columns["state"].labels]
    assert ("transition", 10, 19) in labels
    assert ("after it", -4, -4) in labels
    assert set(CONTEXTS) <= set(table.columns)


@pytest.mark.skipif(bool(why_unavailable()), reason=why_unavailable() or "available")
def test_fields_agree_with_babeltrace2(recorded):
    agreement = compare_with_babeltrace(recorded)
    assert (agreement.outcome, agreement.difference, agreement.events) == (Outcome.EQUAL, "", 2 * STEPS)
