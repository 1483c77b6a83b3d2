"""Formatting of durations and effects."""

from __future__ import annotations

import pytest

from pytest_ldos.base.text import format_duration, format_effect


@pytest.mark.parametrize(
    ("duration_ns", "shown"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_000, "1.00 µs"),
        (999_400, "999 µs"),
        (999_500, "1.00 ms"),
        (16_000_000, "16.0 ms"),
        (999_991_000, "1.00 s"),
        (-2_500_000, "-2.50 ms"),
    ],
)
def test_three_digits_in_a_suitable_unit(duration_ns, shown):
    assert format_duration(duration_ns) == shown


@pytest.mark.parametrize(("size", "shown"), [(0.125, "12.5 %"), (10.0, "1000.0 %"), (4141.75, "> 1000 %")])
def test_very_large_effect_has_no_exact_size(size, shown):
    assert format_effect(size) == shown
