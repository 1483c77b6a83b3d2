"""A recording session in a daemon of its own, and a program that sends messages when it is asked to."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

from pytest_ldos.record.lttng import LttngRecorder
from tests.builders.lttng import Session

TALKER = """
import os, sys, time
from pytest_ldos.robot.dds.emission import emit, new_handle

node, publisher, subscription, rmw_publisher, rmw_subscription, reference, callback = (new_handle() for _ in range(7))
messages = iter(range(1, 1 << 30))
sent = []

def stay(cpu):
    os.sched_setaffinity(0, {int(cpu)})

def begin():
    emit.rcl_init(new_handle(), "8.2.2")
    emit.rcl_node_init(node, new_handle(), "talker", "/")
    emit.rmw_publisher_init(rmw_publisher, bytes(16))
    emit.rcl_publisher_init(publisher, node, rmw_publisher, "/beat", 10)
    emit.rmw_subscription_init(rmw_subscription, bytes(16))
    emit.rcl_subscription_init(subscription, node, rmw_subscription, "/beat", 10)
    emit.rclcpp_subscription_init(subscription, reference)
    emit.rclcpp_subscription_callback_added(reference, callback)
    emit.rclcpp_callback_register(callback, "Talker::hear")

def send():
    message, now_ns = next(messages), time.time_ns()
    emit.rclcpp_publish(message)
    emit.rcl_publish(publisher, message)
    emit.rmw_publish(rmw_publisher, message, now_ns)
    sent.append((message, now_ns))

def take():
    message, stamp_ns = sent.pop(0)
    emit.rmw_take(rmw_subscription, message, stamp_ns, True)
    emit.rcl_take(message)
    emit.rclcpp_take(message)
    emit.callback_start(callback, False)
    emit.callback_end(callback)

def wait(milliseconds):
    time.sleep(int(milliseconds) / 1000)

def repeat(count, milliseconds):
    for _ in range(int(count)):
        send()
        take()
        wait(milliseconds)

for line in sys.stdin:
    for word in line.split():
        name, *arguments = word.split(",")
        globals()[name](*arguments)
    print("done", flush=True)
"""


class Talker:
    """A process that does what words say.

    ``begin``, ``send``, ``take``, ``wait,MILLISECONDS``, ``repeat,COUNT,MILLISECONDS``, and ``stay,CPU``.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def do(self, words: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{words}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "done\n"


class Watched:
    """A session daemon, in which the session ``wanted`` is made.

    Attributes:
        path: value of ``PATH`` with which ``lttng`` reaches this daemon from outside its mount namespace.
    """

    def __init__(self, recorder: LttngRecorder, folder: Path) -> None:
        self.session = Session(recorder, folder / "recorded")
        self._recorder, self._resources = recorder, ExitStack()
        self._environment = {**os.environ, **recorder.environment}
        programs = folder / "bin"
        programs.mkdir()
        home = f"LTTNG_HOME={recorder.environment['LTTNG_HOME']}"
        command = shlex.join(["env", home, *recorder.prefix, str(shutil.which("lttng"))])
        (programs / "lttng").write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (programs / "lttng").chmod(0o755)
        self.path = f"{programs}:{os.environ['PATH']}"

    @contextmanager
    def cleared(self, folder: Path) -> Iterator[None]:
        """No session before the ``with`` block, in which the output is below `folder`; ends its processes."""
        self.session.lttng("destroy", "--all")
        self.session.directory = folder / "recorded"
        with ExitStack() as self._resources:
            yield

    def create(self, *, buffers: str = "--buffers-uid", output: tuple[str, ...] = ()) -> None:
        self.session.create(buffers=buffers, output=output, events="ros2:*,ldos:*")

    def end_daemon(self) -> None:
        home = self._environment["LTTNG_HOME"]
        running = psutil.Process().children(recursive=True)
        mine = [each for each in running if each.name() == "lttng-sessiond" and each.environ()["LTTNG_HOME"] == home]
        mine[0].terminate()
        mine[0].wait(60)

    def talker(self, **environment: str) -> Talker:
        command: Sequence[str] = [*self._recorder.prefix, sys.executable, "-c", TALKER]
        process = subprocess.Popen(
            command, env={**self._environment, **environment}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return Talker(self._resources.enter_context(process))


@contextmanager
def watched_daemon(folder: Path) -> Iterator[Watched]:
    recorder = LttngRecorder(folder / "trace", folder)
    recorder.start()
    try:
        watched = Watched(recorder, folder)
        with watched.cleared(folder):
            yield watched
    finally:
        recorder.stop()
