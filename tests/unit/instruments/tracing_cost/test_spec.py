"""Settings of `ldos tracing-cost`."""

from __future__ import annotations

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.instruments.tracing_cost.spec import SizeAndRate, TracingCostSpec


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sizes_kib": ""}, "sizes_kib is ''"),
        ({"sizes_kib": "1,,2"}, "with commas between them"),
        ({"sizes_kib": "0"}, "between 1 and 1024"),
        ({"sizes_kib": "1025"}, "between 1 and 1024"),
        ({"sizes_kib": "1.5"}, "whole numbers"),
        ({"rates_hz": "fast"}, "rates_hz is 'fast'"),
        ({"rates_hz": "٣"}, "rates_hz is"),
        ({"rates_hz": "100000000000000"}, "between 1 and 10000"),
        ({"rates_hz": "1", "seconds": 0.5}, "not even two messages"),
        ({"seconds": 0.0}, "0 s of each size"),
        ({"seconds": float("nan")}, "nan s of each size"),
        ({"starts": 0}, "0 starts"),
        ({"calls": 10}, "10 calls"),
        ({"rmw": "x"}, "rmw is 'x'"),
    ],
)
def test_invalid_settings_are_refused(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        TracingCostSpec(**settings)


def test_every_size_is_sent_at_every_rate():
    assert TracingCostSpec(sizes_kib="1, 64,1", rates_hz="100").cases == [SizeAndRate(1, 100), SizeAndRate(64, 100)]


def test_the_seeds_grid():
    cases = TracingCostSpec(full=True, sizes_kib="7").cases
    assert len(cases) == 16
    assert {case.size_kib for case in cases} == {1, 32, 64, 256}
    assert {case.rate_hz for case in cases} == {100, 500, 1000, 2000}
