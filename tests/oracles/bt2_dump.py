"""Prints every event of a trace as babeltrace2 reads it, one JSON line each, and at the end how it ended.

Runs under the system's Python, whose package `python3-bt2` it needs, in a process of its
own: the library may abort on damaged traces.
"""

import json
import sys

import bt2  # type: ignore[import-not-found] # of the system Python


def plain(value):
    """A field as JSON has it; a variant is an object of its chosen option alone."""
    if value is None:
        return None
    if isinstance(value, bt2._VariantFieldConst):
        return {value.cls.option_at_index(value.selected_option_index).name: plain(value.selected_option)}
    if isinstance(value, bt2._StructureFieldConst):
        return {name: plain(value[name]) for name in value}
    if isinstance(value, bt2._ArrayFieldConst):
        return [plain(each) for each in value]
    if isinstance(value, bt2._StringFieldConst):
        return str(value) if len(value) else ""  # its bytes are those of an earlier text (babeltrace2 2.0)
    if isinstance(value, bt2._RealFieldConst):
        return float(value)
    if isinstance(value, bt2._BoolFieldConst):
        return bool(value)
    return int(value)


def cpu_of(event):
    if not event.stream.cls.supports_packets:
        return None
    context = event.packet.context_field
    return int(context["cpu_id"]) if context is not None and "cpu_id" in context else None


def row(message):
    event = message.event
    has_clock = event.stream.cls.default_clock_class is not None
    return {
        "name": event.name,
        "ns": message.default_clock_snapshot.ns_from_origin if has_clock else None,
        "cpu": cpu_of(event),
        "context": {**(plain(event.common_context_field) or {}), **(plain(event.specific_context_field) or {})},
        "payload": plain(event.payload_field) or {},
    }


class Listener(bt2._UserSinkComponent):  # type: ignore[misc]
    """Takes all messages of one stream after the other, with nothing in between that puts them in order."""

    def __init__(self, config, params, ports):
        self.inputs = [self._add_input_port(f"in{number}") for number in range(len(ports))]

    def _user_graph_is_configured(self):
        self.iterators = [self._create_message_iterator(port) for port in self.inputs]

    def _user_consume(self):
        for iterator in self.iterators:
            write(iterator)
        raise bt2.Stop


def write_by_stream(trace):
    graph = bt2.Graph()
    source = bt2.find_plugin("ctf").source_component_classes["fs"]
    read = graph.add_component(source, "read", {"inputs": [trace]})
    listener = graph.add_component(Listener, "listen", obj=list(read.output_ports))
    for output, port in zip(read.output_ports, listener.input_ports, strict=True):
        graph.connect_ports(read.output_ports[output], listener.input_ports[port])
    graph.run()


def write(messages):
    for message in messages:
        if type(message) is bt2._DiscardedEventsMessageConst:
            count["discarded"] += message.count or 0
        elif type(message) is bt2._EventMessageConst:
            sys.stdout.write(json.dumps(row(message)) + "\n")


count = {"discarded": 0}


def main():
    trace, *options = sys.argv[1:]
    try:
        write_by_stream(trace) if options else write(bt2.TraceCollectionMessageIterator(trace))
    except bt2._Error as error:
        sys.stdout.write(json.dumps({"refused": [cause.message for cause in error]}) + "\n")
        return 1
    except UnicodeError as error:  # names that are no UTF-8
        sys.stdout.write(json.dumps({"refused": [f"{type(error).__name__}: {error}"]}) + "\n")
        return 1
    sys.stdout.write(json.dumps(count) + "\n")
    return 0


sys.exit(main())
