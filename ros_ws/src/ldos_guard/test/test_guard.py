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

"""The guard as a program: a path that is late throttles a real flood, which recovers with it."""

from contextlib import contextmanager
import json
import os
import signal
import subprocess
import threading

from ament_index_python.packages import get_package_prefix
from geometry_msgs.msg import TransformStamped
import pytest
import rclpy
from rclpy.context import Context
from rclpy.duration import Duration
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import qos_profile_sensor_data
from rclpy.time import Time
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage

PATIENCE_S = 20
PERIOD_S = 0.01
# Far from each other, as a busy machine has its own delays.
DEADLINE_MS = 300.0
LAG_MS = 2000
FLOOD = os.path.join(get_package_prefix('ldos_load'), 'lib', 'ldos_load', 'flood_publisher')
JOINTS = {'topic': '/joints', 'type': 'sensor_msgs/msg/JointState', 'deadline_ms': DEADLINE_MS}
QUICK = {'window_ms': 50.0, 'silence_ms': 500.0, 'calm_windows': 4, 'report_period_s': 0.05}


class Program:
    """A child process that prints JSON lines."""

    def __init__(self, path, node, **parameters):
        settings = [f'{key}:={json.dumps(value)}' for key, value in parameters.items()]
        arguments = [word for setting in settings for word in ('-p', setting)]
        self.process = subprocess.Popen(
            [path, '--ros-args', '-r', f'__node:={node}', *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
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
            assert came, self.reports[-1:]
            return self.reports[-1]

    def last_report(self):
        self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        return self.reports[-1]

    def stop(self, number=signal.SIGINT):
        """End it as a user would; return its last report."""
        self.process.send_signal(number)
        return self.last_report()


@contextmanager
def running(path, node, **parameters):
    program = Program(path, node, **parameters)
    try:
        yield program
    finally:
        if program.process.poll() is None:
            program.process.kill()
        program.process.wait(PATIENCE_S)
        program.process.stdout.close()
        program.process.stderr.close()


def guarding(*publishers, **parameters):
    throttled = {'publishers': [*publishers]} if publishers else {}
    settings = {**JOINTS, **QUICK, **throttled, **parameters}
    return running(os.environ['GUARD'], 'guard', **settings)


def flooding(node='flood', **parameters):
    settings = {'rate_hz': 500.0, 'size_bytes': 64, 'report_period_s': 0.05, **parameters}
    return running(FLOOD, node, **settings)


class PathEnd:
    """A node that publishes the last messages of the path, with a given lateness."""

    def __init__(self, context):
        self.lag = Duration()
        self.is_silent = False
        self.node = rclpy.create_node('path_end', context=context)
        self.make = self.joints
        self.publishers = {
            JointState: self.node.create_publisher(JointState, '/joints', qos_profile_sensor_data),
            TFMessage: self.node.create_publisher(TFMessage, '/tf', 10),
            String: self.node.create_publisher(String, '/joints_text', 10)}
        self.node.create_timer(PERIOD_S, self.publish)
        self.executor = SingleThreadedExecutor(context=context)
        self.executor.add_node(self.node)
        self.thread = threading.Thread(target=self.executor.spin)
        self.thread.start()

    def now(self):
        return self.node.get_clock().now()

    def publish(self):
        if not self.is_silent:
            message = self.make()
            self.publishers[type(message)].publish(message)

    def joints(self):
        message = JointState()
        message.header.stamp = (self.now() - self.lag).to_msg()
        return message

    def transforms(self):
        message = TFMessage(transforms=[TransformStamped(), TransformStamped()])
        message.transforms[0].header.stamp = (self.now() - self.lag).to_msg()
        return message

    def is_late_by(self, milliseconds):
        self.lag = Duration(nanoseconds=milliseconds * 1_000_000)

    def close(self):
        self.executor.shutdown()
        self.thread.join(PATIENCE_S)
        self.node.destroy_node()


@pytest.fixture
def path():
    with Context() as context:
        end = PathEnd(context)
        yield end
        end.close()


def allowed_share(flood, seconds=0.5):
    """Permitted share of the rate, measured from now on for some time."""
    first = flood.await_report(lambda report: report['requested'] > 0)
    until_ns = first['mono_ns'] + seconds * 1e9
    last = flood.await_report(lambda report: report['mono_ns'] > until_ns)
    requested = last['requested'] - first['requested']
    return (last['allowed'] - first['allowed']) / requested


def test_late_path_throttles_the_flood_until_it_recovers(path):
    with flooding() as flood, guarding('/flood') as guard:
        guard.await_report(lambda report: report['received'] > 50 and not report['missing'])
        assert guard.reports[-1]['share'] == 1.0
        assert allowed_share(flood) == pytest.approx(1.0, abs=0.05)
        path.is_late_by(LAG_MS)
        guard.await_report(lambda report: report['share'] == 0.01)
        assert allowed_share(flood) < 0.05
        path.is_late_by(0)
        guard.await_report(lambda report: report['share'] == 1.0)
        assert allowed_share(flood) == pytest.approx(1.0, abs=0.05)
        found = guard.stop()
        sent = flood.stop()
    assert found['final']
    assert found['decreases'] >= 7
    assert found['increases'] >= 19
    assert 0 < found['late'] < found['received']
    assert found['silent_windows'] == found['unstamped'] == 0
    assert found['missing'] == []
    accounted = sum(sent['published'].values()) + sent['given_up']
    assert accounted <= sent['allowed'] < sent['requested']


def test_silent_path_throttles(path):
    with flooding() as flood, guarding('/flood') as guard:
        guard.await_report(lambda report: report['received'] > 10 and report['share'] == 1.0)
        path.is_silent = True
        guard.await_report(lambda report: report['silent_windows'] >= 7)
        assert guard.await_report(lambda report: report['share'] == 0.01)['late'] == 0
        assert allowed_share(flood) < 0.05
        path.is_silent = False
        guard.await_report(lambda report: report['share'] == 1.0)


def test_path_without_any_message_is_not_silent(path):
    path.is_silent = True
    with flooding() as flood, guarding('/flood') as guard:
        guard.await_report(lambda report: len(guard.reports) > 20 and not report['missing'])
        assert allowed_share(flood) == pytest.approx(1.0, abs=0.05)
        assert guard.reports[-1]['silent_windows'] == 0
        path.is_silent = False
        guard.await_report(lambda report: report['received'] > 20)
        path.is_silent = True
        guard.await_report(lambda report: report['share'] == 0.01)


def test_without_publishers_it_only_watches(path):
    path.is_late_by(LAG_MS)
    with guarding() as guard:
        guard.await_report(lambda report: report['share'] == 0.01)
        assert guard.stop()['missing'] == []


def test_first_transform_counts(path):
    path.make = path.transforms
    with guarding('/nobody', topic='/tf', type='tf2_msgs/msg/TFMessage') as guard:
        guard.await_report(lambda report: report['received'] > 20)
        assert guard.reports[-1]['share'] == 1.0
        path.is_late_by(LAG_MS)
        guard.await_report(lambda report: report['share'] < 0.5)


def test_messages_without_a_time_are_counted_separately(path):
    path.make = TFMessage
    with guarding('/nobody', topic='/tf', type='tf2_msgs/msg/TFMessage') as guard:
        guard.await_report(lambda report: report['unstamped'] > 50)
        found = guard.stop()
    assert (found['received'], found['silent_windows'], found['share']) == (0, 0, 1.0)


def test_a_simulation_has_its_own_time(path):
    clock = path.node.create_publisher(Clock, '/clock', 10)
    simulated_s = [1000.0]

    def tick():
        simulated_s[0] += 0.005
        clock.publish(Clock(clock=Time(seconds=simulated_s[0]).to_msg()))

    path.now = lambda: Time(seconds=simulated_s[0])
    with guarding('/nobody', use_sim_time=True) as guard:
        guard.await_report(lambda report: report['unstamped'] > 10)
        path.node.create_timer(0.005, tick)
        guard.await_report(lambda report: report['received'] > 50)
        assert guard.reports[-1]['share'] == 1.0
        path.is_late_by(LAG_MS)
        guard.await_report(lambda report: report['share'] < 0.5)


def test_missing_or_refusing_publishers_are_reported_and_others_throttled(path):
    path.is_late_by(LAG_MS)
    with flooding(), flooding('deaf', reliability='reliable', first_number=2), \
            guarding('/deaf', '/nobody', '/flood') as guard:
        found = guard.await_report(
            lambda report: report['share'] == 0.01 and len(report['missing']) == 2)
        assert found['missing'] == [
            '/deaf: refused: a reliable publisher is not throttled: '
            'its readers wait for every message',
            '/nobody: no such node']
        with flooding('nobody', first_number=3) as late_comer:
            guard.await_report(lambda report: len(report['missing']) == 1)
            assert allowed_share(late_comer) < 0.05


def test_missing_parameter_of_a_publisher_is_reported(path):
    with flooding(), guarding('/flood', parameter='no_such_parameter') as guard:
        found = guard.await_report(lambda report: 'refused' in ''.join(report['missing']))
    assert found['missing'][0].startswith('/flood: refused: ')
    assert 'no_such_parameter' in found['missing'][0]


def test_silent_publisher_does_not_delay_others(path):
    with flooding() as flood, guarding('/flood') as guard:
        guard.await_report(lambda report: report['received'] > 20 and not report['missing'])
        flood.process.send_signal(signal.SIGSTOP)
        path.is_late_by(LAG_MS)
        found = guard.await_report(lambda report: report['missing'] == ['/flood: no answer'])
        guard.await_report(lambda report: report['received'] > found['received'] + 100)
        assert guard.reports[-1]['share'] == 0.01
        flood.process.send_signal(signal.SIGCONT)
        guard.await_report(lambda report: not report['missing'])
        assert allowed_share(flood) < 0.05
    stamps = [report['mono_ns'] for report in guard.reports]
    assert max(b - a for a, b in zip(stamps, stamps[1:])) < 1_000_000_000


def test_restarted_publisher_is_throttled_again(path):
    path.is_late_by(LAG_MS)
    with guarding('/flood') as guard:
        for _ in range(2):
            with flooding() as flood:
                flood.await_report(
                    lambda report: report['requested'] > 100 and
                    report['allowed'] < report['requested'] - 50)
                assert allowed_share(flood) < 0.5
        assert guard.process.poll() is None


@pytest.mark.parametrize('end', [signal.SIGINT, signal.SIGTERM, 'by itself'])
def test_publishers_get_their_full_rate_back_at_the_end(path, end):
    path.is_late_by(LAG_MS)
    limit = {'seconds': 3.0} if end == 'by itself' else {}
    with flooding() as flood, guarding('/flood', **limit) as guard:
        guard.await_report(lambda report: report['share'] == 0.01 and not report['missing'])
        found = guard.last_report() if limit else guard.stop(end)
        assert guard.process.returncode == 0
        assert found['final']
        assert allowed_share(flood) == pytest.approx(1.0, abs=0.05)


def test_guard_ends_soon_if_no_publisher_answers(path):
    path.is_late_by(LAG_MS)
    with flooding() as flood, guarding('/flood') as guard:
        guard.await_report(lambda report: report['share'] == 0.01 and not report['missing'])
        flood.process.send_signal(signal.SIGSTOP)
        guard.process.send_signal(signal.SIGINT)
        assert guard.process.wait(PATIENCE_S / 4) == 0
        flood.process.send_signal(signal.SIGCONT)


@pytest.mark.parametrize(
    ('parameters', 'words'),
    [({'type': 'std_msgs/msg/String'}, 'do not begin with a std_msgs/Header'),
     ({'type': 'no_such_msgs/msg/Nothing'}, 'source the workspace that has the package'),
     ({'publishers': ['/flood', '/flood']}, 'publishers'),
     ({'topic': ''}, 'topic'),
     ({'topic': 'no topic'}, 'no topic'),
     ({'deadline_ms': 0.0}, 'deadline_ms'),
     ({'decrease': 1.0}, 'decrease'),
     ({'least_share': 0.0}, 'least_share'),
     ({'calm_windows': 0}, 'calm_windows')])
def test_invalid_settings_are_refused(parameters, words):
    settings = {'publishers': ['/flood'], **parameters}
    with guarding(**settings) as guard:
        errors = guard.process.stderr.read()
        assert guard.process.wait(PATIENCE_S) != 0
    assert words in errors
