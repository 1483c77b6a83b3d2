"""Each trial plans a pick with MoveIt Task Constructor, and executes it."""


def test_pick(ldos_scenario):
    ldos_scenario()
