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

"""A flood's publications are in a trace that `tracetools_test` records."""

import itertools
import os
import unittest

from launch.actions import RegisterEventHandler, Shutdown
from launch.event_handlers import OnProcessIO
from tracetools_read import get_events_with_field_value, get_events_with_name, get_field
from tracetools_test import case
from tracetools_trace.tools import tracepoints

NODE = 'flood_publisher'
TOPIC = '/flood_topic_1'


class TestFlood(case.TraceTestCase):

    def __init__(self, *args):
        reports = itertools.count()
        until_it_published = OnProcessIO(
            on_stdout=lambda event: Shutdown() if next(reports) == 1 else None)
        super().__init__(
            *args,
            session_name_prefix='ldos-flood',
            events_ros=[tracepoints.rcl_publisher_init, tracepoints.rmw_publish],
            package='ldos_load',
            nodes=[NODE],
            additional_actions=[RegisterEventHandler(until_it_published)])

    def setUp(self):
        # Without a mark, TraceTestCase cannot tell the node's events from those of others.
        os.environ['LD_PRELOAD'] = os.environ['MARKING_LIBRARY']
        self.addCleanup(os.environ.pop, 'LD_PRELOAD')
        super().setUp()

    def test_publications(self):
        created = get_events_with_name(tracepoints.rcl_publisher_init, self._events)
        [publisher] = get_events_with_field_value('topic_name', TOPIC, created)
        self.assertValidHandle(publisher, ['publisher_handle', 'node_handle'])
        self.assertValidQueueDepth(publisher)
        published = get_events_with_field_value(
            'rmw_publisher_handle', get_field(publisher, 'rmw_publisher_handle'),
            get_events_with_name(tracepoints.rmw_publish, self._events))
        self.assertGreater(len(published), 100)
