"""Whatever a topology file says, it is read or refused with its line, in few words."""

from __future__ import annotations

import copy
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.robot.topology.model import decode_topology
from tests.builders.topologies import TWO

KEYS = ["node_name", "node_namespace", "executor_id", "number", "publishers", "subscribers", "clients", "servers",
        "topic_name", "msg_type", "msg_size", "period_ms", "freq_hz", "qos_depth", "qos_reliability", "msg_pass_by",
        "service_name", "srv_type", ""]  # fmt: skip
WORDS = st.sampled_from(["", "a", "/a/b", "//", "a b", "\ud800", "stamped10b", "stamped999999999mb", "x" * 5000])
NUMBERS = st.one_of(st.integers(), st.floats(allow_nan=True), st.sampled_from([10**400, 1e308, 5e-324, -1]))
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    NUMBERS,
    WORDS,
    st.lists(st.integers(), max_size=2),
    st.builds(dict),
    st.builds(copy.deepcopy, st.just(TWO["nodes"][0])),
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """`TWO` with some values replaced, added, or gone; and perhaps some text in between."""
    made = copy.deepcopy(TWO)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from(containers(made)))
        if isinstance(place, list):
            place.append(draw(VALUES))
        elif draw(st.booleans()) and place:
            del place[draw(st.sampled_from(sorted(place)))]
        else:
            place[draw(st.sampled_from(KEYS))] = draw(VALUES)
    text = json.dumps(made, indent=1)
    at = draw(st.integers(0, len(text)))
    return (
        text[:at] + draw(st.sampled_from(["", "", "", '"', "{", "]", "\x00", "NaN", "9" * 5000, "[" * 200])) + text[at:]
    )


def containers(value: object) -> list:
    if isinstance(value, dict):
        return [value, *(each for member in value.values() for each in containers(member))]
    if isinstance(value, list):
        return [value, *(each for member in value for each in containers(member))]
    return []


@settings(max_examples=150, deadline=None)
@given(texts())
def test_it_is_read_or_refused_with_its_line(text):
    refusal = refusal_of(text)
    assert not refusal or refusal.startswith("x.json, line ")
    assert len(refusal) < 900


def refusal_of(text: str) -> str:
    """Empty where it is read."""
    try:
        decode_topology(text, "x.json")
    except ConfigurationError as error:
        return str(error)
    return ""
