#include "session.hpp"

#include "chunk.hpp"
#include "losses.hpp"
#include "parallel.hpp"
#include "unreadable.hpp"

namespace ldos::ctf {

namespace {

// Maps every stream of every trace, and reads the heads of its packets.
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
    session.streams[i] = std::make_unique<Stream>(*session.traces[trace], trace, *session.parts[trace], path);
  });
}

void summarise(Session& session, const Census& census) {
  for (std::size_t i = 0; i < session.streams.size(); ++i) {
    const Stream& stream = *session.streams[i];
    session.summaries.push_back({stream.path(), stream.trace_number(), stream.packets().size(),
                                 census.streams[i].events, census.streams[i].truncated_bytes,
                                 find_gaps(stream.packets())});
  }
}

bool has_rows(const Source& source) {
  for (const Segment& segment : source.census->segments) {
    if (segment.tally.rows[source.part] != 0) return true;
  }
  return false;
}

// The sources of each name. One without events says which columns a table has that has no other.
std::map<std::string, std::vector<Source>> find_sources(const Session& session, const Census& census) {
  std::map<std::string, std::vector<Source>> sources;
  for (std::size_t i = 0; i < session.streams.size(); ++i) {
    const Parts& parts = session.streams[i]->parts();
    for (std::size_t part = 0; part < parts.all.size(); ++part) {
      const Source source{session.streams[i].get(), part, &census.streams[i]};
      std::vector<Source>& known = sources[parts.all[part].type->name];
      if (known.empty()) {
        known.push_back(source);
      } else if (has_rows(source)) {
        if (!has_rows(known.front())) known.clear();
        known.push_back(source);
      }
    }
  }
  return sources;
}

void add_table(Decoding& decoding, const std::map<const Stream*, std::size_t>& number_of, const std::string& name,
               std::vector<Source> sources, const Selection& selection) {
  if (sources.size() > Occurrence::kSources) {
    throw Unreadable(sources.front().stream->path(), std::nullopt, "is one of too many streams");
  }
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (!has_rows(sources[i])) continue;
    decoding.routes[number_of.at(sources[i].stream)][sources[i].part] = {decoding.tables.size(), Occurrence::tag(i)};
  }
  decoding.tables.emplace_back(name, std::move(sources), selection.columns_of(name), decoding.census.chunks());
}

Decoding prepare(const Session& session, const Census& census, const Selection& selection) {
  Decoding decoding{session.streams, census, selection.window, {}, {}};
  std::map<const Stream*, std::size_t> number_of;
  for (std::size_t i = 0; i < session.streams.size(); ++i) {
    number_of[session.streams[i].get()] = i;
    decoding.routes.emplace_back(session.streams[i]->parts().all.size());
  }
  for (auto& [name, sources] : find_sources(session, census)) {
    add_table(decoding, number_of, name, std::move(sources), selection);
  }
  return decoding;
}

}  // namespace

Session read_session(const std::vector<TraceFiles>& files, const Selection& selection) {
  Session session;
  open_streams(session, files, selection);
  const Census census = take_census(session.streams, selection.window, selection.splitting);
  summarise(session, census);
  Decoding decoding = prepare(session, census, selection);
  for_each_index(census.chunks(), selection.splitting.threads, [&](std::size_t chunk) { decode_chunk(decoding, chunk); });
  session.tables.resize(decoding.tables.size());
  for_each_index(session.tables.size(), selection.splitting.threads,
                 [&](std::size_t i) { session.tables[i] = decoding.tables[i].finish(); });
  return session;
}

}  // namespace ldos::ctf
