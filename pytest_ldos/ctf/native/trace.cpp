#include "trace.hpp"

#include "lexer.hpp"
#include "mapped_file.hpp"
#include "unreadable.hpp"

namespace ldos::ctf {

namespace {

const IntegerClass* integer_member(const StructClass& record, std::size_t index, std::string_view name) {
  if (index >= record.members.size() || record.members[index].name != name) return nullptr;
  return std::get_if<IntegerClass>(&record.members[index].type->shape);
}

bool is_whole(const IntegerClass* field, std::uint32_t size) {
  return field != nullptr && field->size == size && field->alignment <= 8 && !field->is_signed;
}

bool has_extended_at(const EnumClass& id, std::int64_t value) {
  for (const EnumMapping& mapping : id.mappings) {
    if (mapping.label == "extended") return mapping.first == value && mapping.last == value;
  }
  return false;
}

// `extended` holds a 32-bit id and a 64-bit timestamp in both of LTTng's headers.
bool is_lttng_extended(const FieldClass& field) {
  const auto* record = std::get_if<StructClass>(&field.shape);
  return record != nullptr && record->members.size() == 2 && record->alignment <= 8 &&
         is_whole(integer_member(*record, 0, "id"), 32) && is_whole(integer_member(*record, 1, "timestamp"), 64);
}

bool is_lttng_compact(const FieldClass& field, std::uint32_t timestamp_bits) {
  const auto* record = std::get_if<StructClass>(&field.shape);
  if (record == nullptr || record->members.size() != 1 || record->alignment > 8) return false;
  const IntegerClass* timestamp = integer_member(*record, 0, "timestamp");
  const std::uint32_t alignment = timestamp_bits % 8 == 0 ? 8 : 1;
  return is_whole(timestamp, timestamp_bits) && timestamp->alignment <= alignment;
}

HeaderKind header_kind(const FieldPtr& header) {
  if (!header) return HeaderKind::interpreted;
  const auto* record = std::get_if<StructClass>(&header->shape);
  if (record == nullptr || record->members.size() != 2 || record->alignment != 8) return HeaderKind::interpreted;
  if (record->members[0].name != "id") return HeaderKind::interpreted;
  const auto* id = std::get_if<EnumClass>(&record->members[0].type->shape);
  const auto* variant = std::get_if<VariantClass>(&record->members[1].type->shape);
  if (id == nullptr || variant == nullptr || variant->options.size() != 2 || variant->tag_name != "id") {
    return HeaderKind::interpreted;
  }
  if (variant->options[0].name != "compact" || variant->options[1].name != "extended" ||
      !is_lttng_extended(*variant->options[1].type)) {
    return HeaderKind::interpreted;
  }
  const FieldClass& compact = *variant->options[0].type;
  if (id->container.size == 5 && has_extended_at(*id, 31) && is_lttng_compact(compact, 27)) return HeaderKind::compact;
  if (id->container.size == 16 && has_extended_at(*id, 65535) && is_lttng_compact(compact, 32)) return HeaderKind::large;
  return HeaderKind::interpreted;
}

StreamType compile_stream(const StreamClass& declared, ByteOrder order) {
  StreamType stream;
  stream.header_kind = header_kind(declared.event_header);
  stream.header_order = order;
  stream.packet_context = compile_layout(declared.packet_context);
  stream.header = compile_layout(declared.event_header);
  for (const auto& [id, event] : declared.events) {
    EventType type;
    type.name = event.name;
    type.layout = compile_layout(declared.event_context, event.context, event.payload);
    const auto& bits = type.layout.fixed_bits;
    if (stream.header_kind != HeaderKind::interpreted && bits && *bits % 8 == 0) type.fixed_bytes = *bits / 8;
    stream.type_by_id[id] = stream.types.size();
    stream.types.push_back(std::move(type));
  }
  return stream;
}

// The clock of the event timestamps; a trace has one.
std::string clock_in_use(const Trace& trace) {
  for (const auto& [id, stream] : trace.streams) {
    for (const Leaf& leaf : stream.header.leaves) {
      if (!leaf.clock.empty()) return leaf.clock;
    }
  }
  return trace.declared.clocks.size() == 1 ? trace.declared.clocks.begin()->first : std::string();
}

ClockToEpoch clock_to_epoch(const ClockClass& clock) {
  ClockToEpoch result;
  result.frequency = clock.frequency;
  const bool negative = clock.offset_cycles < 0;
  const auto offset = static_cast<std::uint64_t>(clock.offset_cycles);
  const std::uint64_t cycles = negative ? 0 - offset : offset;
  const auto part = static_cast<std::uint64_t>(static_cast<unsigned __int128>(cycles) * 1'000'000'000U / clock.frequency);
  const std::uint64_t whole = static_cast<std::uint64_t>(clock.offset_seconds) * 1'000'000'000U;
  result.offset_ns = static_cast<std::int64_t>(negative ? whole - part : whole + part);
  return result;
}

}  // namespace

Trace open_trace(const std::string& metadata_path) {
  Trace trace;
  trace.metadata_path = metadata_path;
  const MappedFile file(metadata_path);
  try {
    trace.declared = parse_metadata(metadata_text(file.bytes(), metadata_path));
    trace.packet_header = compile_layout(trace.declared.packet_header);
    for (const auto& [id, stream] : trace.declared.streams) {
      trace.streams[id] = compile_stream(stream, trace.declared.order);
    }
  } catch (const MetadataError& error) {
    throw Unreadable(metadata_path, std::nullopt, error.what());
  } catch (const UnsupportedField& error) {
    throw Unreadable(metadata_path, std::nullopt, error.what());
  }
  trace.clock_name = clock_in_use(trace);
  const auto clock = trace.declared.clocks.find(trace.clock_name);
  if (clock != trace.declared.clocks.end()) {
    trace.clock = clock_to_epoch(clock->second);
  } else if (!trace.clock_name.empty()) {
    throw Unreadable(metadata_path, std::nullopt, "events are stamped by clock '" + trace.clock_name +
                                                      "', which the metadata does not declare");
  }
  return trace;
}

}  // namespace ldos::ctf
