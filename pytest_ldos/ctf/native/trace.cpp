#include "trace.hpp"

#include <algorithm>

#include "lexer.hpp"
#include "mapped_file.hpp"
#include "unreadable.hpp"

namespace ldos::ctf {

namespace {

const IntegerClass* integer_member(const StructClass& record, std::size_t index, std::string_view name) {
  if (index >= record.members.size() || record.members[index].name != name) return nullptr;
  return std::get_if<IntegerClass>(&record.members[index].type->shape);
}

// Whether the enumeration tells compact from extended headers as LTTng does.
bool is_lttng_id(const EnumClass& id, std::uint32_t bits, ByteOrder order) {
  if (id.container.size != bits || id.container.is_signed || id.container.order != order) return false;
  const std::int64_t extended = (std::int64_t{1} << bits) - 1;
  const auto spans = [&](const char* label, std::int64_t first, std::int64_t last) {
    return std::any_of(id.mappings.begin(), id.mappings.end(), [&](const EnumMapping& mapping) {
      return mapping.label == label && mapping.first == first && mapping.last == last;
    });
  };
  return id.mappings.size() == 2 && spans("compact", 0, extended - 1) && spans("extended", extended, extended);
}

// Whether options have the tag's values that are called like them.
bool chooses_by_labels(const VariantClass& variant, const EnumClass& tag) {
  for (std::size_t i = 0; i < variant.options.size(); ++i) {
    const auto is_label = [&](const EnumMapping& mapping) {
      return mapping.label == variant.options[i].name && variant.ranges[i].size() == 1 &&
             mapping.first == variant.ranges[i][0].first && mapping.last == variant.ranges[i][0].last;
    };
    if (!std::any_of(tag.mappings.begin(), tag.mappings.end(), is_label)) return false;
  }
  return true;
}

bool is_lttng_integer(const IntegerClass* field, std::uint32_t size, std::uint32_t alignment, ByteOrder order) {
  return field != nullptr && field->size == size && field->alignment == alignment && !field->is_signed &&
         field->order == order;
}

// `extended` holds a 32-bit id and a 64-bit timestamp in both of LTTng's headers.
bool is_lttng_extended(const FieldClass& field, ByteOrder order) {
  const auto* record = std::get_if<StructClass>(&field.shape);
  return record != nullptr && record->members.size() == 2 && record->alignment == 8 &&
         is_lttng_integer(integer_member(*record, 0, "id"), 32, 8, order) &&
         is_lttng_integer(integer_member(*record, 1, "timestamp"), 64, 8, order);
}

bool is_lttng_compact(const FieldClass& field, std::uint32_t bits, ByteOrder order) {
  const auto* record = std::get_if<StructClass>(&field.shape);
  const std::uint32_t alignment = bits % 8 == 0 ? 8 : 1;
  return record != nullptr && record->members.size() == 1 && record->alignment == alignment &&
         is_lttng_integer(integer_member(*record, 0, "timestamp"), bits, alignment, order);
}

// A header that differs from LTTng's in anything is interpreted.
HeaderKind header_kind(const FieldPtr& header, ByteOrder order) {
  if (!header) return HeaderKind::interpreted;
  const auto* record = std::get_if<StructClass>(&header->shape);
  if (record == nullptr || record->members.size() != 2 || record->alignment != 8) return HeaderKind::interpreted;
  if (record->members[0].name != "id") return HeaderKind::interpreted;
  const auto* id = std::get_if<EnumClass>(&record->members[0].type->shape);
  const auto* variant = std::get_if<VariantClass>(&record->members[1].type->shape);
  if (id == nullptr || variant == nullptr || variant->options.size() != 2 || variant->tag_name != "id") {
    return HeaderKind::interpreted;
  }
  if (!variant->ranges.empty() && !chooses_by_labels(*variant, *id)) return HeaderKind::interpreted;
  if (variant->options[0].name != "compact" || variant->options[1].name != "extended" ||
      !is_lttng_extended(*variant->options[1].type, order)) {
    return HeaderKind::interpreted;
  }
  const FieldClass& compact = *variant->options[0].type;
  if (is_lttng_id(*id, 5, order) && is_lttng_compact(compact, 27, order)) return HeaderKind::compact;
  if (is_lttng_id(*id, 16, order) && is_lttng_compact(compact, 32, order)) return HeaderKind::large;
  return HeaderKind::interpreted;
}

StreamType compile_stream(const StreamClass& declared, ByteOrder order, std::uint64_t& weight) {
  StreamType stream;
  stream.number = declared.id;
  stream.header_kind = header_kind(declared.event_header, order);
  stream.header_order = order;
  stream.packet_context = compile_layout(declared.packet_context);
  stream.header = compile_layout(declared.event_header);
  for (const auto& [id, event] : declared.events) {
    EventType type;
    type.name = event.name;
    type.layout = compile_layout(declared.event_context, event.context, event.payload);
    weight += type.layout.weight;
    if (weight > kHeaviestLayouts) throw UnsupportedField("events of too many fields");
    const auto& bits = type.layout.fixed_bits;
    if (stream.header_kind != HeaderKind::interpreted && bits && *bits % 8 == 0) type.fixed_bytes = *bits / 8;
    stream.type_by_id[id] = stream.types.size();
    stream.types.push_back(std::move(type));
  }
  return stream;
}

// The clock of the event timestamps; a trace has one.
std::string clock_in_use(const Trace& trace) {
  std::string clock;
  for (const auto& [id, stream] : trace.streams) {
    for (const Leaf& leaf : stream.header.leaves) {
      if (leaf.clock.empty() || leaf.clock == clock) continue;
      if (!clock.empty()) {
        throw Unreadable(trace.metadata_path, std::nullopt,
                         "events are stamped by two clocks, '" + clock + "' and '" + leaf.clock + "'");
      }
      clock = leaf.clock;
    }
  }
  return clock.empty() ? trace.declared.clocks.begin()->first : clock;
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
    const std::string text = metadata_text(file.bytes(), metadata_path);
    trace.declared = is_json(text) ? parse_json_metadata(text) : parse_metadata(text);
    trace.packet_header = compile_layout(trace.declared.packet_header);
    std::uint64_t weight = 0;
    for (const auto& [id, stream] : trace.declared.streams) {
      trace.streams[id] = compile_stream(stream, trace.declared.order, weight);
    }
  } catch (const MetadataError& error) {
    throw Unreadable(metadata_path, std::nullopt, error.what());
  } catch (const UnsupportedField& error) {
    throw Unreadable(metadata_path, std::nullopt, error.what());
  }
  trace.clock_name = clock_in_use(trace);
  trace.clock = clock_to_epoch(trace.declared.clocks.at(trace.clock_name));
  return trace;
}

}  // namespace ldos::ctf
