"""The host class contains exactly the facts that decide comparability."""

from __future__ import annotations

import dataclasses
import re

from pytest_ldos.host.fingerprint import find_differences, find_settings, take_fingerprint


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


OF_MACHINE = {
    "proc/cpuinfo": "model name\t: x\nmicrocode\t: 0xf0\nmicrocode\t: 0xf1\n",
    "proc/cmdline": "BOOT_IMAGE=/vmlinuz-6.8 root=UUID=1 ro quiet isolcpus=2,3 nosmt xnosmt mitigations=off\n",
    "sys/class/dmi/id/bios_version": "2.4.0\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
}


def test_settings_of_firmware_and_kernel(tmp_path):
    assert find_settings({}, root=tmp_path) == {}
    for name, text in OF_MACHINE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    assert find_settings({}, root=tmp_path) == {
        "microcode": "0xf0",
        "firmware": "2.4.0",
        "clock source": "tsc",
        "transparent huge pages": "madvise",
        "kernel option isolcpus": "2,3",
        "kernel option nosmt": "set",
        "kernel option mitigations": "off",
    }


def test_files_of_the_middleware_are_told_apart_by_content(tmp_path):
    file = tmp_path / "dds.xml"
    variables = {
        "CYCLONEDDS_URI": f"file://{file},<Internal>{'x' * 5000}</Internal>",
        "RMW_FASTRTPS_PUBLICATION_MODE": "SYNCHRONOUS",
        "RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp",
        "ROS_DOMAIN_ID": "7",
        "HOME": str(tmp_path),
    }
    contents = []
    for text in ("<a/>", "<b/>", "<a/>"):
        file.write_text(text, "utf-8")
        found = find_settings(variables, root=tmp_path)
        contents.append(found.pop("content of CYCLONEDDS_URI"))
        assert found == {name: variables[name] for name in ("CYCLONEDDS_URI", "RMW_FASTRTPS_PUBLICATION_MODE")}
    assert contents[0] == contents[2] != contents[1]


def test_cpus_of_the_stack_are_part_of_the_host_class():
    lists = ["", "2-3", "2", "2,3", "2,5", "2-5", "move_group=2 rest=3"]
    classes = [take_fingerprint(rmw="cyclonedds", versions={}, stack_cpus=each).host_class for each in lists]
    assert len(set(classes)) == len(lists)
    assert [each.removeprefix(classes[0]) for each in classes[1:3]] == ["_cpus-2-3", "_cpus-2"]
    assert all(re.fullmatch(r"[a-z0-9_-]+", each) for each in classes)
