"""Several conditions at once, as ``-m`` names them: ``pytest -m cpu_load+msg_load``."""

import pytest


@pytest.mark.ldos_scenarios("+")
def test_reach(ldos_scenario):
    ldos_scenario()
