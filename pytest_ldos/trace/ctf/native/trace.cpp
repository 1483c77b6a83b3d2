#include "trace.hpp"

#include <algorithm>
#include <initializer_list>

#include "lexer.hpp"
#include "mapped_file.hpp"
#include "unreadable.hpp"
#include "walk_event.hpp"

namespace ldos::ctf {

namespace {

const IntegerClass* integer_member(const StructClass& record, std::size_t index, std::string_view name) {
  if (index >= record.members.size() || record.members[index].name != name) return nullptr;
  return std::get_if<IntegerClass>(&record.members[index].type->shape);
}

// True if the enumeration distinguishes compact and extended headers as LTTng does.
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

// True if options have the tag's values of the same name.
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

// A header that differs from LTTng's in any way is interpreted.
HeaderKind header_kind(const FieldPtr& header, ByteOrder order) {
  if (!header) return HeaderKind::interpreted;
  const auto* record = std::get_if<StructClass>(&header->shape);
  if (record == nullptr || record->members.size() != 2 || record->alignment != 8) return HeaderKind::interpreted;
  if (record->members[0].name != "id") return HeaderKind::interpreted;
  const auto* id = std::get_if<EnumClass>(&record->members[0].type->shape);
  const auto* variant = std::get_if<VariantClass>(&record->members[1].type->shape);
  if (id == nullptr || variant == nullptr || variant->options.size() != 2) return HeaderKind::interpreted;
  if (variant->tag_name != "id" && variant->tag_name != "stream.event.header.id") return HeaderKind::interpreted;
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

bool is_named(const Leaf& leaf, std::string_view name) {
  const std::string_view known = leaf.name;
  return known.ends_with(name) && (known.size() == name.size() || known[known.size() - name.size() - 1] == '.');
}

// Gives timestamps of a record that name no clock the only existing one; if none is
// declared, one that counts nanoseconds.
void map_timestamps(Layout& record, std::initializer_list<std::string_view> names, TraceClass& declared) {
  for (Leaf& leaf : record.leaves) {
    const auto is_leaf = [&](std::string_view name) { return is_named(leaf, name); };
    if (leaf.kind != LeafKind::integer || !leaf.clock.empty() || std::none_of(names.begin(), names.end(), is_leaf)) {
      continue;
    }
    if (declared.clocks.empty()) declared.clocks["default"].name = "default";
    if (declared.clocks.size() > 1) {
      throw UnsupportedField("'" + leaf.name + "' does not say of which clock it is the value, and there are several");
    }
    leaf.clock = declared.clocks.begin()->first;
  }
}

bool has_clock(const Layout& layout) {
  return std::any_of(layout.leaves.begin(), layout.leaves.end(), [](const Leaf& leaf) { return !leaf.clock.empty(); });
}

// Numbers the values of packets that events refer to.
void keep_outers(StreamType& stream) {
  std::map<std::pair<Scope, std::size_t>, std::size_t> numbers;
  for (EventType& type : stream.types) {
    for (Outer& outer : type.layout.outers) {
      if (outer.scope == Scope::event_header) continue;
      const auto [found, is_new] = numbers.try_emplace({outer.scope, outer.leaf}, stream.kept.size());
      if (is_new) stream.kept.push_back(outer);
      outer.kept = found->second;
    }
  }
}

StreamType compile_stream(const StreamClass& from, const Layout& packet_header, TraceClass& declared,
                          std::uint64_t& weight) {
  StreamType stream;
  stream.number = from.id;
  stream.header_kind = header_kind(from.event_header, declared.order);
  stream.header_order = declared.order;
  stream.packet_context = compile_layout(Scope::packet_context, from.packet_context);
  stream.header = compile_layout(Scope::event_header, from.event_header);
  map_timestamps(stream.packet_context, {"timestamp_begin", "timestamp_end"}, declared);
  map_timestamps(stream.header, {"timestamp"}, declared);
  for (const auto& [id, event] : from.events) {
    EventType type;
    type.name = event.name;
    const Surroundings around{packet_header, stream.packet_context, stream.header};
    type.layout = compile_layout(around, from.event_context, event.context, event.payload);
    stream.clock_in_events = stream.clock_in_events || has_clock(type.layout);
    if (begins_at_header(type.layout)) stream.header_kind = HeaderKind::interpreted;
    weight += type.layout.weight;
    if (weight > kHeaviestLayouts) throw UnsupportedField("events of too many fields");
    const auto& bits = type.layout.fixed_bits;
    if (bits && *bits % 8 == 0) type.fixed_bytes = *bits / 8;
    stream.type_by_id[id] = stream.types.size();
    stream.types.push_back(std::move(type));
  }
  keep_outers(stream);
  if (stream.clock_in_events) stream.header_kind = HeaderKind::interpreted;
  if (stream.header_kind == HeaderKind::interpreted) {
    for (EventType& type : stream.types) type.fixed_bytes.reset();
  }
  return stream;
}

// If there is more than one stream or event, packets and events must name theirs.
void check_choices(const Trace& trace) {
  const auto has = [](const Layout& record, std::string_view name) {
    return std::any_of(record.leaves.begin(), record.leaves.end(), [&](const Leaf& leaf) { return is_named(leaf, name); });
  };
  if (trace.streams.size() > 1 && !has(trace.packet_header, "stream_id")) {
    throw UnsupportedField("there are several streams, but packets do not say to which they belong");
  }
  for (const auto& [id, stream] : trace.streams) {
    if (stream.types.size() <= 1 || has(stream.header, "id")) continue;
    throw UnsupportedField("there are several events in stream " + std::to_string(id) +
                           ", but their header does not say which");
  }
}

bool goes_on(const StreamType& stream) {
  const auto has_part = [](const Leaf& leaf) { return !leaf.clock.empty() && leaf.size < 64; };
  const auto& header = stream.header.leaves;
  const auto& context = stream.packet_context.leaves;
  const auto begin = std::find_if(context.begin(), context.end(), [](const Leaf& leaf) { return leaf.name == "timestamp_begin"; });
  if (begin != context.end()) return has_part(*begin);
  return std::any_of(header.begin(), header.end(), has_part);
}

// The clock of all timestamps of a stream.
std::string find_clock(const StreamType& stream) {
  std::vector<const Layout*> records{&stream.packet_context, &stream.header};
  for (const EventType& type : stream.types) records.push_back(&type.layout);
  std::string clock;
  for (const Layout* record : records) {
    for (const Leaf& leaf : record->leaves) {
      if (leaf.clock.empty() || leaf.clock == clock) continue;
      if (!clock.empty()) throw UnsupportedField("events are stamped by two clocks, '" + clock + "' and '" + leaf.clock + "'");
      clock = leaf.clock;
    }
  }
  return clock;
}

// Some streams of a trace may have no clock; those of others must have one origin.
void set_clocks(Trace& trace) {
  for (auto& [id, stream] : trace.streams) {
    const std::string clock = find_clock(stream);
    if (clock.empty()) continue;
    if (trace.clock_name.empty()) trace.clock_name = clock;
    const auto is_absolute = [&](const std::string& name) { return trace.declared.clocks.at(name).is_absolute; };
    if (clock != trace.clock_name && !(is_absolute(clock) && is_absolute(trace.clock_name))) {
      throw UnsupportedField("streams are stamped by two clocks that need have no common origin, '" + trace.clock_name +
                             "' and '" + clock + "'");
    }
    try {
      stream.clock = ClockToEpoch(trace.declared.clocks.at(clock));
    } catch (const TimeOverflow&) {
      throw UnsupportedField("the offset of clock '" + clock + "' is " + kTimeOverflow);
    }
    stream.has_clock = true;
    stream.clock_goes_on = goes_on(stream);
    if (clock == trace.clock_name) trace.clock_offset_ns = stream.clock.offset_ns();
  }
}

}  // namespace

Trace open_trace(const std::string& metadata_path) {
  Trace trace;
  trace.metadata_path = metadata_path;
  const MappedFile file(metadata_path);
  try {
    const std::string text = metadata_text(file.bytes(), metadata_path);
    trace.declared = is_json(text) ? parse_json_metadata(text) : parse_metadata(text);
    trace.packet_header = compile_layout(Scope::packet_header, trace.declared.packet_header);
    std::uint64_t weight = 0;
    for (const auto& [id, stream] : trace.declared.streams) {
      trace.streams[id] = compile_stream(stream, trace.packet_header, trace.declared, weight);
    }
    check_choices(trace);
    set_clocks(trace);
  } catch (const MetadataError& error) {
    throw Unreadable(metadata_path, std::nullopt, error.what());
  } catch (const UnsupportedField& error) {
    throw Unreadable(metadata_path, std::nullopt, error.what());
  }
  return trace;
}

}  // namespace ldos::ctf
