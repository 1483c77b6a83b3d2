"""Files for speedscope."""

from __future__ import annotations

import json

import pytest
from jsonschema import ValidationError, validate

from pytest_ldos.record.profiles import FoldedStacks, render_speedscope

SCHEMA = {
    "type": "object",
    "required": ["$schema", "shared", "profiles"],
    "properties": {
        "$schema": {"const": "https://www.speedscope.app/file-format-schema.json"},
        "shared": {
            "type": "object",
            "required": ["frames"],
            "properties": {
                "frames": {
                    "type": "array",
                    "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
                }
            },
        },
        "profiles": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["type", "name", "unit", "startValue", "endValue", "samples", "weights"],
                "properties": {
                    "type": {"const": "sampled"},
                    "unit": {"enum": ["bytes", "microseconds", "milliseconds", "nanoseconds", "none", "seconds"]},
                    "startValue": {"type": "number"},
                    "endValue": {"type": "number"},
                    "samples": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
                    "weights": {"type": "array", "items": {"type": "number"}},
                },
            },
        },
    },
}
"""Keys required by speedscope's schema for sampled profiles."""

PROFILE = FoldedStacks({("p", "f", "g"): 3, ("p", "f"): 2, ("q", "<script>"): 4})


def test_file_matches_the_schema():
    validate(json.loads(render_speedscope(PROFILE, "it")), SCHEMA)
    with pytest.raises(ValidationError):
        validate({**json.loads(render_speedscope(PROFILE, "it")), "profiles": [{}]}, SCHEMA)


def test_every_process_is_a_profile_and_all_samples_are_there():
    document = json.loads(render_speedscope(PROFILE, "it"))
    names = [frame["name"] for frame in document["shared"]["frames"]]
    whole, p, q = document["profiles"]
    assert [each["name"] for each in document["profiles"]] == ["all processes", "p", "q"]
    assert [each["endValue"] for each in document["profiles"]] == [9, 5, 4]
    stacks = {tuple(names[frame] for frame in stack) for stack in whole["samples"]}
    assert stacks == set(PROFILE.counts)
    assert len(whole["samples"]) == len(whole["weights"]) == len(p["samples"]) + len(q["samples"])
