#include "session.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <system_error>
#include <utility>

#include "chunk.hpp"
#include "parallel.hpp"
#include "unreadable.hpp"

namespace ldos::ctf {

namespace {

// Events with a time and events without one have no common order.
void check_clocks(const Opened& session) {
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
void drop_unused_clocks(Opened& session) {
  for (std::size_t i = 0; i < session.traces.size(); ++i) {
    const auto is_here = [&](const auto& stream) { return stream->trace_number() == i && !stream->packets().empty(); };
    const auto is_timed = [&](const auto& stream) { return is_here(stream) && stream->packets().front().type->has_clock; };
    const auto& all = session.streams;
    if (std::none_of(all.begin(), all.end(), is_here) || std::any_of(all.begin(), all.end(), is_timed)) continue;
    session.traces[i]->clock_name.clear();
    session.traces[i]->clock_offset_ns = 0;
  }
}

// True in a folder that `lttng rotate` named by times of begin and end: "20260301T091500+0000-20260301T091505+0000-7".
bool is_of_finished_chunk(const Trace& trace) {
  std::error_code unknown;
  std::filesystem::path place = std::filesystem::weakly_canonical(trace.metadata_path, unknown);
  if (unknown) place = trace.metadata_path;
  for (const std::filesystem::path& folder : place) {
    std::string name = folder;
    std::replace_if(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; }, '0');
    std::replace(name.begin(), name.end(), '+', '-');
    if (name.starts_with("00000000T000000-0000-00000000T000000-0000-0")) return true;
  }
  return false;
}

// True if the trace is a part of a rotated session: without packets in a later part, or at the end of this one, a stream
// may have been idle.
bool is_rotated(const Trace& trace, const Opened& opened) {
  const auto is_other = [&](const auto& other) {
    return other.get() != &trace && trace.declared.uuid && other->declared.uuid == trace.declared.uuid;
  };
  return std::any_of(opened.traces.begin(), opened.traces.end(), is_other) || is_of_finished_chunk(trace);
}

// Differences of times must be times.
void check_span(const Opened& opened, const Session& session) {
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
  throw Unreadable(opened.traces.front()->metadata_path, std::nullopt,
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
  Edges(const Opened& opened, const Census& census) : opened_(opened), census_(census) {}

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
    if (opened_.streams[stream]->packets().back().truncated) return end_ns;
    const auto is_later = [&](const StreamCensus& other) { return other.last_ns && *other.last_ns > *end_ns; };
    const bool is_rotated = opened_.is_rotated[opened_.streams[stream]->trace_number()];
    return is_of_lttng(stream) && !is_rotated && any_sibling(stream, is_later) ? end_ns : std::nullopt;
  }

 private:
  template <typename Condition>
  [[nodiscard]] bool any_sibling(std::size_t stream, const Condition& holds) const {
    const Stream& own = *opened_.streams[stream];
    for (std::size_t i = 0; i < opened_.streams.size(); ++i) {
      const auto& packets = opened_.streams[i]->packets();
      if (packets.empty() || packets.front().type != own.packets().front().type) continue;
      if (holds(census_.streams[i])) return true;
    }
    return false;
  }

  [[nodiscard]] bool is_of_lttng(std::size_t stream) const {
    const auto& environment = opened_.streams[stream]->trace().declared.environment;
    const auto is_tracer = [](const auto& entry) {
      const auto* name = std::get_if<std::string>(&entry.second);
      return entry.first == "tracer_name" && name != nullptr && name->starts_with("lttng-");
    };
    return std::any_of(environment.begin(), environment.end(), is_tracer);
  }

  const Opened& opened_;
  const Census& census_;
};

std::vector<StreamSummary> summarise(const Opened& opened, Census& census) {
  const Edges edges(opened, census);
  std::vector<StreamSummary> summaries;
  for (std::size_t i = 0; i < opened.streams.size(); ++i) {
    const Stream& stream = *opened.streams[i];
    const Continuity& continuity = opened.continuity[i];
    StreamCensus& counted = census.streams[i];
    StreamSummary& summary = summaries.emplace_back();
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
    summary.backward_steps = continuity.backward_steps + counted.backward_steps;
    if (!stream.packets().empty()) summary.channel = stream.packets().front().type->number;
    summary.missing_before_ns = edges.missing_before(i, continuity);
    summary.missing_after_ns = edges.missing_after(i, continuity);
    summary.corruptions = in_order(stream.corruptions(), std::move(counted.corruptions));
    summary.continuity = continuity;
  }
  return summaries;
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

Opened open_session(const std::vector<TraceFiles>& files, OnCorrupt on_corrupt, unsigned threads) {
  struct File {
    std::size_t trace;
    const std::string& path;
  };
  Opened opened;
  const std::set<std::string> none;
  std::vector<File> streams;
  for (const TraceFiles& trace_files : files) {
    const auto& trace = opened.traces.emplace_back(std::make_unique<Trace>(open_trace(trace_files.metadata)));
    opened.no_parts.push_back(std::make_unique<Parts>(*trace, &none));
    for (const std::string& path : trace_files.streams) streams.push_back({opened.traces.size() - 1, path});
  }
  opened.streams.resize(streams.size());
  for_each_index(streams.size(), threads, [&](std::size_t i) {
    const auto& [trace, path] = streams[i];
    opened.streams[i] =
        std::make_unique<Stream>(*opened.traces[trace], trace, *opened.no_parts[trace], path, on_corrupt);
    if (opened.streams[i]->bytes() >= Occurrence::kFileBytes) {
      throw Unreadable(path, std::nullopt, "is not smaller than 2 TiB");
    }
  });
  check_clocks(opened);
  drop_unused_clocks(opened);
  for (const auto& trace : opened.traces) opened.is_rotated.push_back(is_rotated(*trace, opened));
  opened.continuity = follow_streams(opened.streams, on_corrupt);
  return opened;
}

std::vector<PacketSpan> spans_of(const Opened& opened) {
  std::vector<PacketSpan> spans;
  for (const auto& stream : opened.streams) {
    for (const Packet& packet : stream->packets()) {
      if (!packet.begin_ns || !packet.type->has_clock) continue;
      const std::int64_t end_ns = std::max(packet.end_ns.value_or(*packet.begin_ns), *packet.begin_ns);
      spans.push_back({*packet.begin_ns, end_ns, packet.content_bits / 8});
    }
  }
  return spans;
}

Session read_session(const Opened& opened, const Selection& selection) {
  Session session;
  for (const auto& trace : opened.traces) {
    session.parts.push_back(std::make_unique<Parts>(*trace, selection.events ? &*selection.events : nullptr));
  }
  for (const auto& stream : opened.streams) {
    session.streams.push_back(std::make_unique<Stream>(*stream, *session.parts[stream->trace_number()]));
  }
  Census census = take_census(session.streams, selection.window, selection.splitting);
  session.summaries = summarise(opened, census);
  Decoding decoding = prepare(session, census, selection);
  const unsigned threads = selection.splitting.threads;
  for_each_index(census.chunks(), threads, [&](std::size_t chunk) { decode_chunk(decoding, chunk); });
  session.tables.resize(decoding.tables.size());
  for_each_index(session.tables.size(), threads,
                 [&](std::size_t i) { session.tables[i] = decoding.tables[i].finish(); });
  check_span(opened, session);
  return session;
}

}  // namespace ldos::ctf
