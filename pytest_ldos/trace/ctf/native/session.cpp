#include "session.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "chunk.hpp"
#include "parallel.hpp"
#include "unreadable.hpp"

namespace ldos::ctf {

namespace {

// Maps every stream of every trace, and reads its packets' headers.
void open_streams(Session& session, const std::vector<TraceFiles>& files, const Selection& selection) {
  struct File {
    std::size_t trace;
    const std::string& path;
  };
  std::vector<File> opened;
  for (const TraceFiles& trace_files : files) {
    const auto& trace = session.traces.emplace_back(std::make_unique<Trace>(open_trace(trace_files.metadata)));
    session.parts.push_back(std::make_unique<Parts>(*trace, selection.events ? &*selection.events : nullptr));
    for (const std::string& path : trace_files.streams) opened.push_back({session.traces.size() - 1, path});
  }
  session.streams.resize(opened.size());
  for_each_index(opened.size(), selection.splitting.threads, [&](std::size_t i) {
    const auto& [trace, path] = opened[i];
    session.streams[i] =
        std::make_unique<Stream>(*session.traces[trace], trace, *session.parts[trace], path, selection.on_corrupt);
    if (session.streams[i]->bytes() >= Occurrence::kFileBytes) {
      throw Unreadable(path, std::nullopt, "is not smaller than 2 TiB");
    }
  });
}

// Events with a time and events without one have no common order.
void check_clocks(const Session& session) {
  const Stream* first = nullptr;
  for (const auto& stream : session.streams) {
    if (stream->packets().empty()) continue;
    if (first == nullptr) first = stream.get();
    const auto has_clock = [](const Stream& each) { return each.packets().front().type->has_clock; };
    if (has_clock(*first) == has_clock(*stream)) continue;
    const Stream& timed = has_clock(*first) ? *first : *stream;
    const Stream& other = has_clock(*first) ? *stream : *first;
    throw Unreadable(other.path(), std::nullopt,
                     "its events have no time (there is no clock), but those of " + timed.path() +
                         " have: they cannot be put in one order");
  }
}

// A trace has the clock of its existing streams.
void drop_unused_clocks(Session& session) {
  for (std::size_t i = 0; i < session.traces.size(); ++i) {
    const auto is_here = [&](const auto& stream) { return stream->trace_number() == i && !stream->packets().empty(); };
    const auto is_timed = [&](const auto& stream) { return is_here(stream) && stream->packets().front().type->has_clock; };
    const auto& all = session.streams;
    if (std::none_of(all.begin(), all.end(), is_here) || std::any_of(all.begin(), all.end(), is_timed)) continue;
    session.traces[i]->clock_name.clear();
    session.traces[i]->clock_offset_ns = 0;
  }
}

// Differences of times must be times.
void check_span(const Session& session) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  for (const Table& table : session.tables) {
    if (table.rows == 0) continue;
    const auto* times = table.timestamp_ns.as<std::int64_t>();
    first = std::min(first, times[0]);
    last = std::max(last, times[table.rows - 1]);
  }
  std::int64_t span = 0;
  if (first > last || !__builtin_sub_overflow(last, first, &span)) return;
  throw Unreadable(session.traces.front()->metadata_path, std::nullopt,
                   "its events and those of the other traces are more than 292 years apart");
}

// Damaged headers and events, in the order of the file.
std::vector<Corruption> in_order(std::vector<Corruption> heads, std::vector<Corruption> events) {
  std::move(events.begin(), events.end(), std::back_inserter(heads));
  std::sort(heads.begin(), heads.end(), [](const Corruption& a, const Corruption& b) { return a.offset < b.offset; });
  return heads;
}

// Finds packets that are, or may be, missing at the beginning and the end of a stream.
class Edges {
 public:
  Edges(const Session& session, const Census& census) : session_(session), census_(census) {}

  // If packets have no numbers, those before the first one may have been overwritten if other streams of the
  // channel had events by then.
  [[nodiscard]] std::optional<std::int64_t> missing_before(std::size_t stream, const Continuity& continuity) const {
    const auto& begin_ns = continuity.begin_ns;
    if (!begin_ns || continuity.earlier_packets != 0) return begin_ns;
    const auto is_earlier = [&](const StreamCensus& other) { return other.first_ns && *other.first_ns < *begin_ns; };
    return !continuity.is_numbered && any_sibling(stream, is_earlier) ? begin_ns : std::nullopt;
  }

  // When LTTng is stopped, it ends all streams of a channel behind the last event. What ends earlier was not written
  // to its end, or was cut. Other tracers end a stream at its own last event.
  [[nodiscard]] std::optional<std::int64_t> missing_after(std::size_t stream, const Continuity& continuity) const {
    const auto& last_ns = census_.streams[stream].last_ns;
    std::optional<std::int64_t> end_ns = continuity.end_ns;
    if (!end_ns || (last_ns && *last_ns > *end_ns)) end_ns = last_ns;
    if (!continuity.has_last || !end_ns) return std::nullopt;
    if (session_.streams[stream]->packets().back().truncated) return end_ns;
    const auto is_later = [&](const StreamCensus& other) { return other.last_ns && *other.last_ns > *end_ns; };
    return is_of_lttng(stream) && !is_in_chunks(stream) && any_sibling(stream, is_later) ? end_ns : std::nullopt;
  }

 private:
  template <typename Condition>
  [[nodiscard]] bool any_sibling(std::size_t stream, const Condition& holds) const {
    const Stream& own = *session_.streams[stream];
    for (std::size_t i = 0; i < session_.streams.size(); ++i) {
      const auto& packets = session_.streams[i]->packets();
      if (packets.empty() || packets.front().type != own.packets().front().type) continue;
      if (holds(census_.streams[i])) return true;
    }
    return false;
  }

  [[nodiscard]] bool is_of_lttng(std::size_t stream) const {
    const auto& environment = session_.streams[stream]->trace().declared.environment;
    const auto is_tracer = [](const auto& entry) {
      const auto* name = std::get_if<std::string>(&entry.second);
      return entry.first == "tracer_name" && name != nullptr && name->starts_with("lttng-");
    };
    return std::any_of(environment.begin(), environment.end(), is_tracer);
  }

  // True if the stream's trace was rotated: without packets in a later chunk, the stream may have been idle.
  [[nodiscard]] bool is_in_chunks(std::size_t stream) const {
    const Trace& own = session_.streams[stream]->trace();
    const auto is_other = [&](const auto& trace) {
      return trace.get() != &own && own.declared.uuid && trace->declared.uuid == own.declared.uuid;
    };
    return std::any_of(session_.traces.begin(), session_.traces.end(), is_other);
  }

  const Session& session_;
  const Census& census_;
};

void summarise(Session& session, Census& census, std::vector<Continuity> continuity) {
  const Edges edges(session, census);
  for (std::size_t i = 0; i < session.streams.size(); ++i) {
    const Stream& stream = *session.streams[i];
    StreamCensus& counted = census.streams[i];
    StreamSummary& summary = session.summaries.emplace_back();
    summary.path = stream.path();
    summary.trace = stream.trace_number();
    summary.packets = stream.packets().size();
    summary.events = counted.events;
    summary.truncated_bytes = stream.truncated_bytes() + counted.truncated_bytes;
    for (const Packet& packet : stream.packets()) {
      summary.missing_bytes += packet.missing_bytes;
      summary.missing_padding += packet.missing_padding;
      summary.foreign_packets += packet.foreign ? 1 : 0;
    }
    summary.backward_steps = continuity[i].backward_steps + counted.backward_steps;
    if (!stream.packets().empty()) summary.channel = stream.packets().front().type->number;
    summary.missing_before_ns = edges.missing_before(i, continuity[i]);
    summary.missing_after_ns = edges.missing_after(i, continuity[i]);
    summary.corruptions = in_order(stream.corruptions(), std::move(counted.corruptions));
    summary.continuity = std::move(continuity[i]);
  }
}

// The parts of a stream that have events.
std::set<std::size_t> parts_with_rows(const StreamCensus& census) {
  std::set<std::size_t> parts;
  for (const Segment& segment : census.segments) {
    for (const auto& [part, counts] : segment.tally) parts.insert(part);
  }
  return parts;
}

// The sources of each name, in the order of traces, streams and parts.
std::map<std::string, std::vector<Source>> find_sources(const Session& session, const Census& census) {
  std::map<std::string, std::vector<Source>> sources;
  for (std::size_t i = 0; i < session.streams.size(); ++i) {
    const Stream& stream = *session.streams[i];
    for (const std::size_t part : parts_with_rows(census.streams[i])) {
      sources[stream.parts().all[part].type->name].emplace_back(stream, part, census.streams[i]);
    }
  }
  return sources;
}

// A name without events still has columns: those of its first layout.
void add_unseen(std::map<std::string, std::vector<Source>>& sources, const Session& session, const Census& census) {
  const Parts* known = nullptr;
  for (std::size_t i = 0; i < session.streams.size(); ++i) {
    const Parts& parts = session.streams[i]->parts();
    if (std::exchange(known, &parts) == &parts) continue;
    for (std::size_t part = 0; part < parts.all.size(); ++part) {
      std::vector<Source>& of_name = sources[parts.all[part].type->name];
      if (of_name.empty()) of_name.emplace_back(*session.streams[i], part, census.streams[i]);
    }
  }
}

class Router {
 public:
  Router(const Session& session, Decoding& decoding) : decoding_(decoding) {
    for (std::size_t i = 0; i < session.streams.size(); ++i) {
      number_of_[session.streams[i].get()] = i;
      decoding.routes.emplace_back().of_part.resize(session.streams[i]->parts().all.size());
    }
  }

  // Leads the sources to the table that is added next.
  void lead(const std::vector<Source>& sources) {
    if (sources.size() > Occurrence::kSources) {
      throw Unreadable(sources.front().stream->path(), std::nullopt, "is one of too many streams");
    }
    const std::size_t table = decoding_.tables.size();
    for (std::size_t i = 0; i < sources.size(); ++i) {
      Routes& routes = decoding_.routes[number_of_.at(sources[i].stream)];
      if (routes.tables.empty() || routes.tables.back() != table) routes.tables.push_back(table);
      routes.of_part[sources[i].part] = {routes.tables.size() - 1, Occurrence::tag(i)};
    }
  }

 private:
  Decoding& decoding_;
  std::map<const Stream*, std::size_t> number_of_;
};

Decoding prepare(const Session& session, const Census& census, const Selection& selection) {
  Decoding decoding{session.streams, census, selection.window, {}, {}};
  Router router(session, decoding);
  auto all_sources = find_sources(session, census);
  add_unseen(all_sources, session, census);
  for (auto& [name, sources] : all_sources) {
    if (sources.front().has_rows()) router.lead(sources);
    decoding.tables.emplace_back(name, std::move(sources), selection.columns_of(name), census.chunks());
  }
  return decoding;
}

}  // namespace

std::vector<PacketSpan> read_spans(const std::vector<TraceFiles>& files, const Selection& selection) {
  Session session;
  open_streams(session, files, selection);
  (void)follow_streams(session.streams, selection.on_corrupt);
  std::vector<PacketSpan> spans;
  for (const auto& stream : session.streams) {
    for (const Packet& packet : stream->packets()) {
      if (!packet.begin_ns || !packet.type->has_clock) continue;
      const std::int64_t end_ns = std::max(packet.end_ns.value_or(*packet.begin_ns), *packet.begin_ns);
      spans.push_back({*packet.begin_ns, end_ns, packet.content_bits / 8});
    }
  }
  return spans;
}

Session read_session(const std::vector<TraceFiles>& files, const Selection& selection) {
  Session session;
  open_streams(session, files, selection);
  check_clocks(session);
  drop_unused_clocks(session);
  std::vector<Continuity> continuity = follow_streams(session.streams, selection.on_corrupt);
  Census census = take_census(session.streams, selection.window, selection.splitting);
  summarise(session, census, std::move(continuity));
  Decoding decoding = prepare(session, census, selection);
  const unsigned threads = selection.splitting.threads;
  for_each_index(census.chunks(), threads, [&](std::size_t chunk) { decode_chunk(decoding, chunk); });
  session.tables.resize(decoding.tables.size());
  for_each_index(session.tables.size(), threads,
                 [&](std::size_t i) { session.tables[i] = decoding.tables[i].finish(); });
  check_span(session);
  return session;
}

}  // namespace ldos::ctf
