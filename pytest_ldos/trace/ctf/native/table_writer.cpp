#include "table_writer.hpp"

#include <algorithm>

#include "unreadable.hpp"
#include "walk_event.hpp"

namespace ldos::ctf {

TableWriter::TableWriter(TableBuilder& table, std::size_t chunk)
    : table_(table),
      plan_(table.plan_),
      chunk_(chunk),
      row_(table.first_row_[chunk]),
      end_(table.first_row_[chunk + 1]),
      ranges_(plan_.columns.size()),
      codes_(plan_.columns.size()) {
  for (const Source& source : table.sources_) files_.push_back(source.stream->data());
  packets_.resize(files_.size(), nullptr);
  for (const Source& source : table.sources_) {
    const std::optional<std::int32_t> cpu = source.stream->only_cpu();
    if (!cpu) {
      cpus_.clear();
      break;
    }
    cpus_.push_back(*cpu);
  }
  for (std::size_t i = 0; i < plan_.columns.size(); ++i) {
    if (plan_.columns[i].is_open()) ranges_[i] = {table.first_element_[i][chunk], table.first_element_[i][chunk + 1]};
  }
}

void TableWriter::write(std::span<const Occurrence> events) {
  if (events.size() > end_ - row_) refuse();
  while (!events.empty()) {
    const std::size_t size = std::min(kBlock, events.size());
    write_block(events.first(size));
    events = events.subspan(size);
    row_ += size;
  }
}

void TableWriter::finish() {
  if (row_ != end_) refuse();
  for (const ElementRange& range : ranges_) {
    if (range.next != range.end) refuse();
  }
  std::vector<Dictionary>& texts = table_.texts_[chunk_];
  for (TextCodes& codes : codes_) texts.push_back(std::move(codes.dictionary));
}

void TableWriter::write_block(std::span<const Occurrence> events) {
  auto* const times = table_.table_.timestamp_ns.as<std::int64_t>() + row_;
  for (std::size_t i = 0; i < events.size(); ++i) times[i] = events[i].time_ns;
  write_cpus(events);
  write_traces(events);
  if (!plan_.direct.empty()) write_direct(events);
  if (!plan_.walked.empty()) write_walked(events);
}

void TableWriter::write_cpus(std::span<const Occurrence> events) {
  if (table_.table_.cpu_id.of_all) return;
  auto* const cpus = table_.table_.cpu_id.of_each.as<std::int32_t>() + row_;
  for (std::size_t i = 0; i < events.size(); ++i) {
    cpus[i] = cpus_.empty() ? static_cast<std::int32_t>(packet_of(events[i]).cpu) : cpus_[events[i].source()];
  }
}

void TableWriter::write_traces(std::span<const Occurrence> events) {
  if (table_.table_.trace.of_all) return;
  auto* const traces = table_.table_.trace.of_each.as<std::int32_t>() + row_;
  for (std::size_t i = 0; i < events.size(); ++i) {
    traces[i] = static_cast<std::int32_t>(table_.sources_[events[i].source()].stream->trace_number());
  }
}

const Packet& TableWriter::packet_of(const Occurrence& event) {
  const Packet*& packet = packets_[event.source()];
  if (packet == nullptr || !packet->has_event_at(event.bit())) [[unlikely]] {
    packet = &table_.sources_[event.source()].stream->packet_at(event.bit());
  }
  return *packet;
}

void TableWriter::locate(std::span<const Occurrence> events) {
  if (events_.size() < events.size()) events_.resize(events.size());
  const std::uint8_t* const* files = files_.data();
  for (std::size_t i = 0; i < events.size(); ++i) events_[i] = files[events[i].source()] + events[i].bit() / 8;
}

void TableWriter::write_direct(std::span<const Occurrence> events) {
  locate(events);
  if (plan_.groups.size() == 1) return gather_group(0, {events_.data(), nullptr, events.size(), row_});
  for (std::size_t group = 0; group < plan_.groups.size(); ++group) {
    of_group_.clear();
    rows_of_group_.clear();
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (plan_.group_of[events[i].source()] != group) continue;
      of_group_.push_back(events_[i]);
      rows_of_group_.push_back(static_cast<std::uint32_t>(i));
    }
    gather_group(group, {of_group_.data(), rows_of_group_.data(), of_group_.size(), row_});
  }
}

void TableWriter::gather_group(std::size_t group, const Block& block) {
  for (std::size_t i = 0; i < plan_.direct.size(); ++i) {
    const std::size_t column = plan_.direct[i];
    const Leaf* leaf = plan_.groups[group].leaves[i];
    if (leaf != nullptr) gather(plan_.columns[column], *leaf, block, codes_[column]);
  }
}

void TableWriter::write_walked(std::span<const Occurrence> events) {
  RowSink sink(plan_.columns, plan_.walked, ranges_, codes_);
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Source& source = table_.sources_[events[i].source()];
    const Packet& packet = packet_of(events[i]);
    Cursor cursor{source.stream->data() + packet.offset, events[i].bit() - packet.offset * 8, packet.content_bits};
    sink.begin(plan_.walked_leaf[events[i].source()], row_ + i);
    try {
      walk_event(source.layout(), packet, cursor, slots_, sink);
    } catch (const Overrun&) {
      refuse();
    } catch (const UnknownTag&) {
      refuse();
    } catch (const TooManyElements&) {
      refuse();
    }
    sink.end();
  }
}

void TableWriter::refuse() const {
  throw changed(table_.sources_.front().stream->path());
}

}  // namespace ldos::ctf
