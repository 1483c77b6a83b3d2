# Copyright (c) 2026 The pytest-ldos authors
#
# Permission is hereby granted, free of charge, to any person obtaining a copy
# of this software and associated documentation files (the "Software"), to deal
# in the Software without restriction, including without limitation the rights
# to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
# copies of the Software, and to permit persons to whom the Software is
# furnished to do so, subject to the following conditions:
#
# The above copyright notice and this permission notice shall be included in
# all copies or substantial portions of the Software.
#
# THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
# IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
# FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL
# THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
# LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
# OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN
# THE SOFTWARE.

"""Publisher and counter as programs: what is sent arrives and is counted."""

from contextlib import contextmanager
import json
import os
import signal
import subprocess
import threading
import time

import pytest
from rcl_interfaces.srv import SetParameters
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter

PATIENCE_S = 20


class Program:
    """A child process that prints JSON lines."""

    def __init__(self, name, **parameters):
        settings = [f'{key}:={value}' for key, value in parameters.items()]
        arguments = [word for setting in settings for word in ('-p', setting)]
        self.process = subprocess.Popen(
            [os.environ[name], '--ros-args', *arguments], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.reports = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            with self._changed:
                self.reports.append(json.loads(line))
                self._changed.notify_all()

    def await_report(self, is_wanted):
        with self._changed:
            came = self._changed.wait_for(
                lambda: self.reports and is_wanted(self.reports[-1]), PATIENCE_S)
            assert came, self.reports
            return self.reports[-1]

    def stop(self):
        """End it as a user would; return its last report."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        return self.reports[-1]


def accounted(report):
    """Messages that were sent, or given up on a machine that is too busy."""
    return sum(report['published'].values()) + report['given_up']


@pytest.fixture
def ask_for_throttle():
    """Ask the publisher for a share, as anybody may; return its answer."""
    with Context() as context:
        node = rclpy.create_node('asker', context=context)
        executor = SingleThreadedExecutor(context=context)
        client = node.create_client(SetParameters, '/flood_publisher/set_parameters')

        def ask(share):
            assert client.wait_for_service(PATIENCE_S)
            wanted = Parameter('throttle', value=share).to_parameter_msg()
            answer = client.call_async(SetParameters.Request(parameters=[wanted]))
            rclpy.spin_until_future_complete(node, answer, executor, PATIENCE_S)
            return answer.result().results[0]

        yield ask
        node.destroy_node()


@contextmanager
def running(name, **parameters):
    program = Program(name, **parameters)
    try:
        yield program
    finally:
        if program.process.poll() is None:
            program.process.kill()
        program.process.wait(PATIENCE_S)
        program.process.stdout.close()
        program.process.stderr.close()


@pytest.mark.parametrize('reliability', ['best_effort', 'reliable'])
def test_a_flood_arrives_and_is_counted(reliability):
    topics = ['/flood_topic_1', '/flood_topic_2']
    shared = {'publishers': 2, 'reliability': reliability}
    with running('FLOOD_COUNTER', **shared) as counter, \
            running('FLOOD_PUBLISHER', rate_hz=500.0, depth=100, **shared) as publisher:
        counter.await_report(lambda report: min(report['received'].values()) > 1000)
        published = publisher.stop()
        received = counter.stop()
    assert published['final'] and received['final']
    assert sorted(published['published']) == sorted(received['received']) == topics
    assert accounted(published) >= 0.99 * published['requested']
    for topic in topics:
        counted = received['received'][topic] + received['lost'][topic]
        assert counted <= published['published'][topic]
    if reliability == 'reliable':
        assert not any(received['lost'].values())


def test_a_flood_may_wait_for_its_readers():
    settings = {'rate_hz': 500.0, 'awaits_readers': True, 'report_period_s': 0.1}
    with running('FLOOD_PUBLISHER', **settings) as publisher:
        publisher.await_report(lambda report: len(publisher.reports) > 10)
        assert publisher.reports[-1]['published'] == {'/flood_topic_1': 0}
        assert publisher.reports[-1]['requested'] == 0
        with running('FLOOD_COUNTER', report_period_s=0.1) as counter:
            counter.await_report(lambda report: report['received']['/flood_topic_1'] > 200)
            assert counter.stop()['received']['/flood_topic_1'] <= publisher.stop()['requested']


def test_a_flood_begins_after_a_second_without_changes():
    with Context() as context, \
            running('FLOOD_PUBLISHER', rate_hz=500.0, report_period_s=0.02) as publisher:
        publisher.await_report(lambda report: True)
        visitors = []
        for number in range(10):
            came_ns = time.monotonic_ns()
            visitors.append(rclpy.create_node(f'visitor_{number}', context=context))
            time.sleep(0.2)  # somebody comes more often than once a second
        publisher.await_report(lambda report: report['requested'] > 0)
        for visitor in visitors:
            visitor.destroy_node()
    first = next(each for each in publisher.reports if each['requested'] > 0)
    assert first['mono_ns'] > came_ns + 1_000_000_000


def test_messages_that_are_too_late_are_dropped():
    with running('FLOOD_PUBLISHER', rate_hz=500.0, report_period_s=0.1) as publisher:
        publisher.await_report(lambda report: report['published']['/flood_topic_1'] > 100)
        publisher.process.send_signal(signal.SIGSTOP)
        time.sleep(1.0)  # what is missed in this time is what is given up
        publisher.process.send_signal(signal.SIGCONT)
        publisher.await_report(lambda report: report['given_up'] >= 450)
        published = publisher.stop()
    sent = published['published']['/flood_topic_1']
    assert abs(published['requested'] - sent - published['given_up']) <= 2
    assert sum(published['error_bins'].values()) == sent - 1


@pytest.mark.parametrize('name', ['FLOOD_COUNTER', 'FLOOD_PUBLISHER'])
def test_guard_restores_rates_if_its_reports_are_not_read(name):
    with running(name, report_period_s=0.05) as program:
        program.await_report(lambda report: len(program.reports) > 2)
        nowhere = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nowhere, program.process.stdout.fileno())  # the pipe has no reader any more
        os.close(nowhere)
        time.sleep(0.3)  # some reports that are not read
        assert program.process.poll() is None
        program.process.send_signal(signal.SIGINT)
        assert program.process.wait(PATIENCE_S) == 0


def test_a_flood_may_end_by_itself():
    with running('FLOOD_PUBLISHER', rate_hz=100.0, seconds=1.0) as publisher:
        assert publisher.process.wait(PATIENCE_S) == 0
        publisher.await_report(lambda report: report['final'])


def rates_between(first, last):
    """Messages a second: requested, allowed, sent."""
    seconds = (last['mono_ns'] - first['mono_ns']) / 1e9
    begin, end = [
        (report['requested'], report['allowed'], accounted(report)) for report in (first, last)]
    return [(after - before) / seconds for before, after in zip(begin, end)]


def test_throttle_takes_effect_immediately_without_later_bursts(ask_for_throttle):
    settings = {'publishers': 2, 'rate_hz': 500.0, 'report_period_s': 0.05}
    with running('FLOOD_PUBLISHER', **settings) as publisher:
        for share in (0.1, 1.0, 0.5):
            assert ask_for_throttle(share).successful
            asked_ns = time.monotonic_ns()
            first = publisher.await_report(
                lambda report: report['mono_ns'] > asked_ns and report['requested'] > 0)
            last = publisher.await_report(
                lambda report: report['mono_ns'] > first['mono_ns'] + 1_000_000_000)
            rates = rates_between(first, last)
            assert rates == pytest.approx([1000, 1000 * share, 1000 * share], rel=0.15)
        published = publisher.stop()
    assert published['allowed'] < 0.9 * published['requested']
    assert 0 <= published['allowed'] - accounted(published) <= 10


def test_throttle_may_be_set_at_the_start():
    with running('FLOOD_PUBLISHER', rate_hz=500.0, throttle=0.2) as publisher:
        publisher.await_report(lambda report: report['requested'] > 500)
        published = publisher.stop()
    assert published['allowed'] == pytest.approx(published['requested'] / 5, abs=2)
    assert accounted(published) == pytest.approx(published['allowed'], abs=5)


@pytest.mark.parametrize('share', [0.0, -0.5, 1.001, float('nan'), 1, 'half'])
def test_invalid_share_is_refused(ask_for_throttle, share):
    with running('FLOOD_PUBLISHER', rate_hz=100.0) as publisher:
        answer = ask_for_throttle(share)
        publisher.await_report(lambda report: report['requested'] > 50)
        published = publisher.stop()
    assert not answer.successful
    assert 'throttle' in answer.reason
    assert published['allowed'] == published['requested']


@pytest.mark.parametrize('share', [0.5, 1.0])
def test_a_reliable_publisher_is_not_throttled(ask_for_throttle, share):
    with running('FLOOD_PUBLISHER', reliability='reliable'):
        answer = ask_for_throttle(share)
    assert not answer.successful
    assert answer.reason.startswith('a reliable publisher is not throttled')


def test_a_reliable_publisher_does_not_begin_throttled():
    with running('FLOOD_PUBLISHER', reliability='reliable', throttle=0.5) as publisher:
        errors = publisher.process.stderr.read()
        assert publisher.process.wait(PATIENCE_S) != 0
    assert 'a reliable publisher is not throttled' in errors


def test_the_rate_is_kept_in_bursts():
    with running('FLOOD_PUBLISHER', rate_hz=1000.0, burst=50, size_bytes=16) as publisher:
        publisher.await_report(lambda report: report['requested'] >= 1500)
        published = publisher.stop()
    assert sum(published['published'].values()) % 50 == 0
    assert accounted(published) >= 0.95 * published['requested']


def test_a_size_without_room_for_the_sequence_is_refused():
    with running('FLOOD_PUBLISHER', size_bytes=15) as publisher:
        errors = publisher.process.stderr.read()
        assert publisher.process.wait(PATIENCE_S) != 0
    assert 'size_bytes' in errors
