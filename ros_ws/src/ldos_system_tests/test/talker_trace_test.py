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

"""The publications of a node are in a trace that `tracetools_test` records."""

from tracetools_read import get_events_with_field_value, get_events_with_name, get_field
from tracetools_test import case
from tracetools_trace.tools import tracepoints

MESSAGES = 200


class TestTalker(case.TraceTestCase):

    def __init__(self, *args):
        super().__init__(
            *args,
            session_name_prefix='ldos-talker',
            events_ros=[tracepoints.rcl_publisher_init, tracepoints.rmw_publish],
            package='ldos_system_tests',
            nodes=['talker'])

    def test_every_publication_is_recorded(self):
        created = get_events_with_name(tracepoints.rcl_publisher_init, self._events)
        [publisher] = get_events_with_field_value('topic_name', '/chatter', created)
        self.assertValidHandle(publisher, ['publisher_handle', 'node_handle'])
        self.assertValidQueueDepth(publisher)
        published = get_events_with_field_value(
            'rmw_publisher_handle', get_field(publisher, 'rmw_publisher_handle'),
            get_events_with_name(tracepoints.rmw_publish, self._events))
        self.assertEqual(len(published), MESSAGES)
