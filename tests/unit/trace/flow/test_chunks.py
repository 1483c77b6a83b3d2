"""Links and summaries computed in small chunks equal those of whole tables."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ldos.base.ros2 import PathSpec
from pytest_ldos.trace.execution.build import build_execution
from tests.builders.chunks import assert_equal_tables, found_in, small_chunks
from tests.unit.trace.flow.test_random_systems import System, rules, steps


@pytest.mark.acceptance
@settings(max_examples=12, deadline=None)
@given(rules, steps, st.integers(3, 40))
def test_any_system_in_any_chunks(links, played, rows):
    system = System(links)
    system.play(played)
    decoded = system.recording.trace()
    topics = build_execution(decoded).topics()
    paths = [PathSpec(name=f"{one} {other}", via=(one, other)) for one, other in pairwise(topics)]
    flow, expected = found_in(build_execution(decoded), paths)
    with small_chunks(rows):
        in_chunks, found = found_in(build_execution(decoded), paths)
    assert_equal_tables(found, expected)
    assert in_chunks.without_partner == flow.without_partner
