"""Each trial plans one of the problems; nothing moves."""

import pytest


@pytest.mark.planning
def test_planning(ldos_scenario):
    ldos_scenario()
