"""The host class contains exactly the facts that decide comparability."""

from __future__ import annotations

import dataclasses
import re

from pytest_ldos.host.fingerprint import find_differences, take_fingerprint


def test_the_host_class_is_a_folder_name():
    assert re.fullmatch(r"[a-z0-9_-]+", take_fingerprint(rmw="cyclonedds", versions={}).host_class)


def test_versions_do_not_change_the_class_but_are_named():
    base = take_fingerprint(rmw="cyclonedds", versions={"mujoco": "3.2", "ompl": "1.7"})
    head = dataclasses.replace(base, kernel="9.9", versions={"mujoco": "3.3", "toppra": "0.6"})
    assert head.host_class == base.host_class
    differences = find_differences(head, base)
    assert ("mujoco", "3.2", "3.3") in differences
    assert ("ompl", "1.7", "absent") in differences
    assert ("toppra", "absent", "0.6") in differences
    assert ("kernel", base.kernel, "9.9") in differences


def test_facts_of_the_host_class():
    base = take_fingerprint(rmw="cyclonedds", versions={})
    changes = {"cpu_model": "other", "cores": 999, "smt": "?", "governor": "?", "turbo": "?", "rmw": "fastrtps"}
    classes = {dataclasses.replace(base, **{name: value}).host_class for name, value in changes.items()}
    assert len(classes | {base.host_class}) == len(changes) + 1
