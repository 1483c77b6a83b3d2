"""The same test as for the Panda, one for each scenario (pytest -m baseline); what differs is in pyproject.toml."""


def test_reach(ldos_scenario):
    ldos_scenario()
