"""Prints every event of a trace as babeltrace2 reads it, one JSON line each.

Runs under the system's Python, whose package `python3-bt2` it needs, in a process of its
own: the library may abort on damaged traces.
"""

import json
import sys

import bt2  # type: ignore[import-not-found] # of the system Python


def plain(value):
    if value is None:
        return None
    if isinstance(value, bt2._VariantFieldConst):
        return plain(value.selected_option)
    if isinstance(value, bt2._StructureFieldConst):
        return {name: plain(value[name]) for name in value}
    if isinstance(value, bt2._ArrayFieldConst):
        return [plain(each) for each in value]
    if isinstance(value, bt2._StringFieldConst):
        return str(value)
    if isinstance(value, bt2._RealFieldConst):
        return float(value)
    if isinstance(value, bt2._BoolFieldConst):
        return bool(value)
    return int(value)


def main():
    discarded = 0
    for message in bt2.TraceCollectionMessageIterator(sys.argv[1]):
        if type(message) is bt2._DiscardedEventsMessageConst:
            discarded += message.count or 0
            continue
        if type(message) is not bt2._EventMessageConst:
            continue
        event = message.event
        row = {
            "name": event.name,
            "ns": message.default_clock_snapshot.ns_from_origin,
            "cpu": plain(event.packet.context_field["cpu_id"]),
            "context": plain(event.common_context_field) or {},
            "payload": plain(event.payload_field) or {},
        }
        sys.stdout.write(json.dumps(row) + "\n")
    sys.stdout.write(json.dumps({"discarded": discarded}) + "\n")


main()
