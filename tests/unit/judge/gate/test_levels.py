"""Looks count only if they were at the present comparison."""

from __future__ import annotations

import pytest

from pytest_ldos.judge.gate.case import fractions_of, looks_of
from pytest_ldos.measure.trial.record import Look
from tests.builders.trials import noisy_set

BASE = noisy_set(1, n=20)
HEAD = noisy_set(2, n=20, looks=(Look(10, 20),), last_look=Look(30, 20))
IN_TURNS = noisy_set(2, n=20, session="s", looks=(Look(10, 10),), last_look=Look(30, 30))


def test_run_extended_against_its_baseline():
    assert looks_of(HEAD, BASE) == (Look(10, 20), Look(20, 20))
    assert fractions_of(HEAD, BASE) == pytest.approx(((20 / 3) / 12, 10 / 12))


def test_looks_at_another_baseline_do_not_count():
    other = noisy_set(1, n=12)
    assert looks_of(HEAD, other) == (Look(20, 12),)
    assert fractions_of(HEAD, other) == (1.0,)


def test_a_session_looked_at_its_own_base():
    base = noisy_set(1, n=20, session="s")
    assert looks_of(IN_TURNS, base) == (Look(10, 10), Look(20, 20))
    assert fractions_of(IN_TURNS, base) == pytest.approx((1 / 3, 2 / 3))


def test_a_session_did_not_look_at_the_base_of_another():
    for base in (BASE, noisy_set(1, n=10), noisy_set(1, n=20, session="t")):
        assert looks_of(IN_TURNS, base) == (Look(20, len(base.trials)),)
        assert fractions_of(IN_TURNS, base) == (1.0,)
