"""Settings of `ldos latency`: refusals, and names of combinations."""

from __future__ import annotations

import re

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.instruments.latency.spec import (
    LatencySpec,
    Program,
    Transport,
    Trigger,
    cases_of,
    setups_of,
    show_size,
)
from pytest_ldos.scenario.fields import build_spec
from pytest_ldos.scenario.loads import Reliability


def test_lists_are_read_with_units_and_each_value_once():
    spec = LatencySpec(sizes="1, 1KiB,1024 ,1MiB", reliability="best_effort,reliable", fragment_sizes="1344,8kb")
    assert spec.size_list == (1, 1024, 1 << 20)
    assert spec.reliability_list == (Reliability.BEST_EFFORT, Reliability.RELIABLE)
    assert spec.fragment_list == (1344, 8000)
    assert spec.message_list == (0,)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sizes": "0"}, "sizes holds '0'"),
        ({"sizes": "2MiB"}, "sizes holds '2MiB'"),
        ({"sizes": "1.5"}, "sizes holds '1.5'"),
        ({"sizes": "-1"}, "sizes holds '-1'"),
        ({"sizes": "big"}, "sizes holds 'big'"),
        ({"sizes": ""}, "sizes is ''"),
        ({"sizes": "1,,2"}, "a value is empty"),
        ({"reliability": "sure"}, "reliability holds 'sure'"),
        ({"transports": "loopback,telepathy"}, "transports holds 'telepathy'"),
        ({"fragment_sizes": "100"}, "fragment_sizes holds '100'"),
        ({"fragment_sizes": "70000"}, "fragment_sizes holds '70000'"),
        ({"max_message_sizes": "1MiB"}, "max_message_sizes holds '1MiB'"),
        ({"seconds": 0}, "a round of 0 s"),
        ({"seconds": float("nan")}, "a round of nan s"),
        ({"seconds": 61}, "a round of 61 s"),
        ({"rounds": 0}, "0 rounds"),
        ({"rate_hz": -1}, "a rate of -1 Hz"),
        ({"rate_hz": 1.5, "seconds": 0.5}, "1.5 Hz give no message in each round of 0.5 s"),
        ({"rate_hz": 1e-12}, "1e-12 Hz give no message"),
        ({"ping_cpu": -2}, "ping_cpu is -2"),
        ({"priority": 100}, "a priority of 100"),
        ({"patience_ms": 0}, "a patience of 0 ms"),
        ({"match_timeout_s": 0}, "0 s to match"),
        ({"sizes": ",".join(map(str, range(1, 202)))}, "combinations"),
    ],
)
def test_invalid_settings_are_refused_with_a_remedy(settings, message):
    with pytest.raises(ConfigurationError, match=re.escape(message)) as caught:
        LatencySpec(**settings)
    assert caught.value.remedy


def test_an_unknown_setting_names_the_nearest():
    with pytest.raises(ConfigurationError, match="fragment_sizes"):
        build_spec(LatencySpec, {"fragment_size": "1344"}, "of ldos_latency:")


def test_every_combination_is_a_case_of_every_program():
    spec = LatencySpec(sizes="1,64KiB", reliability="reliable,best_effort", fragment_sizes="1344,8000")
    setups = setups_of(spec)
    assert len(setups) == 2 * 2 * 2 * 2
    assert len(set(setups)) == len(setups)
    cases = cases_of(setups, [Program.CYCLONE, Program.DDSPERF])
    assert len({case.name(spec) for case in cases}) == len(cases) == 32


def test_fast_dds_is_measured_once_in_a_sweep_of_cyclone_settings():
    spec = LatencySpec(sizes="64KiB", transports="loopback", fragment_sizes="0,1344,8000")
    cases = cases_of(setups_of(spec), [Program.RCLCPP_CYCLONE, Program.RCLCPP_FASTDDS])
    assert [case.program for case in cases].count(Program.RCLCPP_FASTDDS) == 1
    assert [case.program for case in cases].count(Program.RCLCPP_CYCLONE) == 3


def test_name_has_all_relevant_settings():
    plain = LatencySpec(sizes="1KiB", transports="loopback")
    changed = LatencySpec(
        sizes="1KiB",
        transports="loopback",
        trigger=Trigger.WAITSET,
        rate_hz=100,
        ping_cpu=0,
        priority=80,
        max_message_sizes="65500",
    )
    (case,) = cases_of(setups_of(plain), [Program.CYCLONE])
    assert case.name(plain) == "cyclonedds, loopback, 1 KiB, reliable"
    (case,) = cases_of(setups_of(changed), [Program.CYCLONE])
    name = case.name(changed)
    for part in ("MaxMessageSize 65500", "waitset", "100 Hz", "CPUs 0 and any", "FIFO 80"):
        assert part in name


def test_one_process_has_no_choice_of_trigger():
    spec = LatencySpec(sizes="1", transports=Transport.ONE_PROCESS, trigger=Trigger.WAITSET)
    (case,) = cases_of(setups_of(spec), [Program.CYCLONE])
    assert "waitset" not in case.name(spec)


def test_sizes_are_shown_in_the_largest_unit_that_fits():
    assert [show_size(size) for size in (1, 1000, 1024, 65536, 1 << 20)] == [
        "1 B",
        "1000 B",
        "1 KiB",
        "64 KiB",
        "1 MiB",
    ]
