"""Any bytes end in records of perf, or in a refusal."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pytest_ldos.base.errors import TraceUnreadable
from pytest_ldos.trace.perf import read_perf_records
from tests.builders.perf_data import PerfData


def whole_file() -> bytes:
    data = PerfData()
    data.name(7, "planner")
    data.fork(50, 8, 7)
    for time in range(100, 1000, 100):
        data.switch(time, 0, 7, 8, preempted=True)
        data.switch(time + 50, 0, 8, 7)
    data.lose(1000, 0, 3)
    with tempfile.TemporaryDirectory() as folder:
        return data.write(Path(folder) / "x.data").read_bytes()


WHOLE = whole_file()


@given(
    st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), max_size=20),
    st.integers(0, len(WHOLE)),
    st.binary(max_size=64),
)
def test_damage_is_read_around_or_refused(changes, length, more):
    content = bytearray(WHOLE)
    for place, value in changes:
        content[place] = value
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.data"
        file.write_bytes(bytes(content[:length]) + more)
        try:
            found = read_perf_records(file)
        except TraceUnreadable:
            return
        assert len(found.switches) <= len(content) // 32
