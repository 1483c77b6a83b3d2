"""Writes a trace with babeltrace2's own writer of CTF, `sink.ctf.fs`.

Runs under the system's Python, whose package `python3-bt2` it needs. Its argument is JSON: where to
write (`output`), `clock` (frequency, offset in seconds and in cycles, or null for none), `packets`
(whether streams have them) and `times`, the cycles of each event.
"""

import json
import sys

import bt2  # type: ignore[import-not-found] # of the system Python


class Messages(bt2._UserMessageIterator):  # type: ignore[misc]
    def __init__(self, config, port):
        self._messages = port.user_data

    def __next__(self):
        return next(self._messages)(self)


class Source(bt2._UserSourceComponent, message_iterator_class=Messages):  # type: ignore[misc,call-arg]
    def __init__(self, config, params, wanted):
        self._wanted = wanted
        trace_class = self._create_trace_class()
        clock = self._clock(wanted["clock"]) if wanted["clock"] else None
        has_packets = wanted["packets"]
        context = trace_class.create_structure_field_class() if has_packets else None
        if has_packets:
            context += [("cpu_id", trace_class.create_unsigned_integer_field_class(32))]
        common = trace_class.create_structure_field_class()
        common += [("vpid", trace_class.create_signed_integer_field_class(32))]
        stream_class = trace_class.create_stream_class(
            default_clock_class=clock,
            supports_packets=has_packets,
            packet_context_field_class=context,
            packets_have_beginning_default_clock_snapshot=has_packets and clock is not None,
            packets_have_end_default_clock_snapshot=has_packets and clock is not None,
            event_common_context_field_class=common,
        )
        event_class = stream_class.create_event_class(name="app:all", payload_field_class=payload_class(trace_class))
        trace = trace_class(environment={"hostname": 'a "quoted"\nhost', "answer": -42})
        stream = trace.create_stream(stream_class)
        self._add_output_port("out", self._plan(stream, event_class))

    def _clock(self, wanted):
        frequency, seconds, cycles = wanted
        offset = bt2.ClockClassOffset(seconds, cycles)
        return self._create_clock_class(name="beat", frequency=frequency, offset=offset, origin_is_unix_epoch=True)

    def _plan(self, stream, event_class):
        times = self._wanted["times"]
        clock = {"default_clock_snapshot": 0} if self._wanted["clock"] else {}
        yield lambda out: out._create_stream_beginning_message(stream)
        halves = [times[: len(times) // 2], times[len(times) // 2 :]] if self._wanted["packets"] else [times]
        step = 0
        for cpu, half in enumerate(halves):
            packet = stream.create_packet() if self._wanted["packets"] else None
            if packet is not None:
                packet.context_field["cpu_id"] = cpu
                begin = {**clock, **({"default_clock_snapshot": half[0]} if clock else {})}
                yield lambda out, p=packet, b=begin: out._create_packet_beginning_message(p, **b)
            for time in half:
                now = {"default_clock_snapshot": time} if clock else {}
                yield lambda out, p=packet, n=now, s=step: event(out, event_class, p or stream, n, s)
                step += 1
            if packet is not None:
                end = {"default_clock_snapshot": half[-1]} if clock else {}
                yield lambda out, p=packet, e=end: out._create_packet_end_message(p, **e)
        yield lambda out: out._create_stream_end_message(stream)


def payload_class(trace_class):
    unsigned, signed = trace_class.create_unsigned_integer_field_class, trace_class.create_signed_integer_field_class
    labels = trace_class.create_unsigned_enumeration_field_class(8)
    first, second = (bt2.UnsignedIntegerRangeSet([(value, value)]) for value in (0, 1))
    labels += [("number", first), ("text", second)]
    inner = trace_class.create_structure_field_class()
    inner += [("x", signed(16)), ("y", trace_class.create_string_field_class())]
    chosen = trace_class.create_variant_field_class(selector_fc=labels)
    chosen.append_option("number", unsigned(7), first)
    chosen.append_option("text", trace_class.create_string_field_class(), second)
    payload = trace_class.create_structure_field_class()
    payload += [
        ("bits", unsigned(5)),
        ("odd", signed(37)),
        ("wide", unsigned(64)),
        ("struct", unsigned(8)),  # a word of the language
        ("label", labels),
        ("half", trace_class.create_single_precision_real_field_class()),
        ("ratio", trace_class.create_double_precision_real_field_class()),
        ("text", trace_class.create_string_field_class()),
        ("fixed", trace_class.create_static_array_field_class(signed(12), 3)),
        ("open", trace_class.create_dynamic_array_field_class(unsigned(16))),
        ("inner", inner),
        ("what", chosen),
    ]
    return payload


def event(out, event_class, parent, clock, step):
    message = out._create_event_message(event_class, parent, **clock)
    message.event.common_context_field["vpid"] = -step
    field = message.event.payload_field
    field["bits"], field["odd"], field["wide"] = step % 32, -(1 << 36) + step, (1 << 64) - 1 - step
    field["struct"], field["label"], field["half"], field["ratio"] = step % 256, step % 2, step / 4, step / 3
    field["text"], field["fixed"] = f"text {step}" * (step % 3), [-step % 2048, 0, 7]
    field["open"].length = step % 4
    for i in range(step % 4):
        field["open"][i] = step + i
    field["inner"]["x"], field["inner"]["y"] = -step, "ä" * (1 + step % 2)
    field["what"].selected_option_index = step % 2
    field["what"].selected_option.value = f"option {step}" if step % 2 else step % 128
    return message


def main():
    wanted = json.loads(sys.argv[1])
    graph = bt2.Graph()
    source = graph.add_component(Source, "make", obj=wanted)
    sink_class = bt2.find_plugin("ctf").sink_component_classes["fs"]
    sink = graph.add_component(sink_class, "write", {"path": wanted["output"]})
    graph.connect_ports(source.output_ports["out"], sink.input_ports["in"])
    graph.run()


main()
