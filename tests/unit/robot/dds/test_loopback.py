"""Sockets with the preloaded library, in a network of two machines."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_ldos.robot.dds import domain as loopback
from pytest_ldos.robot.dds.domain import bound_to_loopback, deaf_to_other_devices, ports_of
from tests.builders.namespaces import in_namespaces

DOMAIN = 5
PORT = ports_of(DOMAIN).start + 10
OURS, THEIRS = "10.213.7.1", "10.213.7.2"

LISTENER = """
import socket, sys
family, port = (socket.AF_INET6, sys.argv[1]) if sys.argv[2] == "v6" else (socket.AF_INET, sys.argv[1])
listening = socket.socket(family, socket.SOCK_DGRAM)
listening.bind(("", int(port)))
print(listening.getsockname()[0], flush=True)
while (heard := listening.recv(100)) != b"end":
    print(heard.decode(), flush=True)
"""

TWO_MACHINES = """
import json, os, socket, subprocess, sys
settings = json.loads(sys.argv[1])

def ip(*words):
    subprocess.run(["ip", *words], check=True)

ip("link", "set", "lo", "up")
other = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
other.stdout.readline()
ip("link", "add", "here", "type", "veth", "peer", "name", "there", "netns", str(other.pid))
for device, address, prefix in (("here", settings["ours"], []), ("there", settings["theirs"], ["nsenter", f"--target={other.pid}", "--net"])):
    for words in (["addr", "add", f"{address}/24", "dev", device], ["link", "set", device, "up"]):
        subprocess.run([*prefix, "ip", *words], check=True)
"""

SEND = """
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # what one CPU sends arrives in its order

def send(text, address, family=socket.AF_INET):
    socket.socket(family, socket.SOCK_DGRAM).sendto(text.encode(), (address, settings["port"]))

listener = subprocess.Popen(
    [sys.executable, "-c", settings["listener"], str(settings["listens_on"]), settings["family"]],
    env={**os.environ, **settings["environment"]}, stdout=subprocess.PIPE, text=True)
print(listener.stdout.readline().strip())
outside = f'''
import socket
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.sendto(b"from another machine", ("{settings["ours"]}", {settings["port"]}))
'''
subprocess.run(["nsenter", f"--target={other.pid}", "--net", sys.executable, "-c", outside], check=True)
send("to another address of this machine", settings["ours"])
send("to the loopback device", "::1" if settings["family"] == "v6" else "127.0.0.1",
     socket.AF_INET6 if settings["family"] == "v6" else socket.AF_INET)
send("end", "::1" if settings["family"] == "v6" else "127.0.0.1",
     socket.AF_INET6 if settings["family"] == "v6" else socket.AF_INET)
print(listener.communicate(timeout=60)[0], end="")
other.communicate(timeout=60)
"""


def hear(environment, *, port=PORT, family="v4") -> tuple[str, list[str]]:
    """Returns the address of a socket bound to any device, then the received messages with their senders."""
    settings = {
        "environment": dict(environment),
        "family": family,
        "listener": LISTENER,
        "listens_on": port,
        "ours": OURS,
        "port": port,
        "theirs": THEIRS,
    }
    command = in_namespaces("", [sys.executable, "-c", TWO_MACHINES + SEND, json.dumps(settings)], kinds=("net",))
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
    assert done.returncode == 0, done.stderr
    address, *heard = done.stdout.splitlines()
    return address, heard


OUTSIDE, OTHER_ADDRESS, LOOPBACK = (
    "from another machine",
    "to another address of this machine",
    "to the loopback device",
)


def test_without_library_other_machines_are_received():
    assert hear({}) == ("0.0.0.0", [OUTSIDE, OTHER_ADDRESS, LOOPBACK])


def test_embedded_processes_bind_to_loopback():
    assert hear(bound_to_loopback()) == ("127.0.0.1", [LOOPBACK])
    assert hear(bound_to_loopback(), family="v6") == ("::1", [LOOPBACK])


def test_other_middleware_keeps_its_addresses_but_receives_no_other_machine():
    assert hear(deaf_to_other_devices(DOMAIN)) == ("0.0.0.0", [OTHER_ADDRESS, LOOPBACK])


def test_other_ports_are_not_affected():
    """Such as the ports of a robot's driver."""
    assert hear(deaf_to_other_devices(DOMAIN), port=ports_of(DOMAIN).stop) == (
        "0.0.0.0",
        [OUTSIDE, OTHER_ADDRESS, LOOPBACK],
    )


def test_other_preloaded_libraries_are_kept(monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", "libm.so.6")
    mine, other = bound_to_loopback()["LD_PRELOAD"].split(":")
    assert (Path(mine).name, other) == ("libldos_loopback.so", "libm.so.6")
    assert deaf_to_other_devices(1, {"LD_PRELOAD": "libdl.so.2"})["LD_PRELOAD"] == f"{mine}:libdl.so.2"


def test_library_path_may_contain_spaces(tmp_path, monkeypatch):
    folder = tmp_path / "my project"
    folder.mkdir()
    shutil.copy(bound_to_loopback()["LD_PRELOAD"], folder)
    monkeypatch.setattr(loopback, "_library", lambda: folder / "libldos_loopback.so")
    assert hear(bound_to_loopback()) == ("127.0.0.1", [LOOPBACK])


@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
def test_tcp_and_explicit_addresses_are_not_affected(kind):
    code = f"""
import contextlib, socket
ports = iter(range({PORT}, {ports_of(DOMAIN).stop}))
for address in ("", "127.0.0.2"):
    with socket.socket(socket.AF_INET, socket.{kind}) as bound:
        while not bound.getsockname()[1]:
            with contextlib.suppress(OSError):  # another program has this port
                bound.bind((address, next(ports)))
        print(bound.getsockname()[0])
"""
    environment = {**os.environ, **bound_to_loopback()}
    addresses = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert addresses.split() == ["127.0.0.1" if kind == "SOCK_DGRAM" else "0.0.0.0", "127.0.0.2"]


PARTICIPANT = """
import sys, time
from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsParticipant
from cyclonedds.domain import Domain, DomainParticipant
domain, peer, others, seconds = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
configured = Domain(domain, "<CycloneDDS><Domain><General><AllowMulticast>false</AllowMulticast></General>"
    "<Discovery><ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>32</MaxAutoParticipantIndex>"
    f'<Peers><Peer address="{peer}"/></Peers></Discovery></Domain></CycloneDDS>')
participant = DomainParticipant(domain)
reader = BuiltinDataReader(participant, BuiltinTopicDcpsParticipant)
deadline, seen = time.monotonic() + seconds, set()
while len(seen) < others and time.monotonic() < deadline:
    seen |= {each.key for each in reader.take(N=100)} - {participant.guid}
    time.sleep(0.05)
print(len(seen), flush=True)
sys.stdin.read()
"""

MEET = """
def start(prefix, environment, *arguments):
    command = [*prefix, sys.executable, "-c", settings["participant"], settings["domain"], *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env={**os.environ, **environment}, stdin=pipe, stdout=pipe, text=True)

inside = [start([], settings["environment"], "127.0.0.1", "1", "60") for _ in range(2)]
print([int(each.stdout.readline()) for each in inside])
outside = start(["nsenter", f"--target={other.pid}", "--net"], {}, settings["ours"], "2", settings["patience_s"])
print(int(outside.stdout.readline()))
for each in (*inside, outside, other):
    each.communicate(timeout=60)
"""


@pytest.mark.parametrize("is_deaf", [False, True])
def test_ros_2s_cyclone_dds_discovers_only_this_machine(is_deaf):
    """Uses the settings of `rmw_cyclonedds` for ``LOCALHOST``, which announce another interface's address."""
    settings = {
        "domain": str(DOMAIN),
        "environment": dict(deaf_to_other_devices(DOMAIN)) if is_deaf else {},
        "ours": OURS,
        "participant": PARTICIPANT,
        "patience_s": "3" if is_deaf else "60",
        "theirs": THEIRS,
    }
    command = in_namespaces("", [sys.executable, "-c", TWO_MACHINES + MEET, json.dumps(settings)], kinds=("net",))
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[1, 1]", "0" if is_deaf else "2"]
