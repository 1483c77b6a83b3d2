"""The arm of a MoveIt configuration package, one test per scenario (``pytest -m baseline``)."""


def test_reach(ldos_scenario):
    ldos_scenario()
