"""Copies a trace without some events, by babeltrace2's own reader and writer of CTF.

Runs under the system's Python, whose package `python3-bt2` it needs. Its argument is JSON: the trace (`input`), where
to write (`output`), and names of events to leave out (`events`), which may end with `*`.
"""

import json
import sys
from fnmatch import fnmatchcase

import bt2  # type: ignore[import-not-found] # of the system Python


class Messages(bt2._UserMessageIterator):  # type: ignore[misc]
    def __init__(self, config, port):
        self._messages = self._create_message_iterator(self._component._input_ports["in"])
        self._patterns = self._component.patterns

    def __next__(self):
        while True:
            message = next(self._messages)
            if not isinstance(message, bt2._EventMessageConst) or not self._is_left_out(message.event.name):
                return message

    def _is_left_out(self, name):
        return any(fnmatchcase(name, pattern) for pattern in self._patterns)


class Filter(bt2._UserFilterComponent, message_iterator_class=Messages):  # type: ignore[misc,call-arg]
    def __init__(self, config, params, patterns):
        self.patterns = patterns
        self._add_input_port("in")
        self._add_output_port("out")


def main():
    asked = json.loads(sys.argv[1])
    ctf = bt2.find_plugin("ctf")
    graph = bt2.Graph()
    source = graph.add_component(ctf.source_component_classes["fs"], "read", {"inputs": [asked["input"]]})
    muxer = graph.add_component(bt2.find_plugin("utils").filter_component_classes["muxer"], "merge")
    chosen = graph.add_component(Filter, "choose", obj=asked["events"])
    sink = graph.add_component(ctf.sink_component_classes["fs"], "write", {"path": asked["output"], "quiet": True})
    for number, port in enumerate(list(source.output_ports.values())):
        graph.connect_ports(port, muxer.input_ports[f"in{number}"])
    graph.connect_ports(muxer.output_ports["out"], chosen.input_ports["in"])
    graph.connect_ports(chosen.output_ports["out"], sink.input_ports["in"])
    graph.run()


main()
