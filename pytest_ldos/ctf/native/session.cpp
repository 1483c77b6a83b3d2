#include "session.hpp"

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

namespace ldos::ctf {

namespace {

// Runs `work(0) … work(count - 1)` on up to `threads` threads; the first exception wins.
void for_each_index(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_lock;
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard guard(failure_lock);
        if (!failure) failure = std::current_exception();
        next = count;
      }
    }
  };
  {
    std::vector<std::jthread> others;
    const std::size_t helpers = std::min<std::size_t>(threads, count);
    for (std::size_t i = 1; i < helpers; ++i) others.emplace_back(run);
    run();
  }
  if (failure) std::rethrow_exception(failure);
}

// Numbers the wanted event types of a trace, so that a scan can tell them by index.
std::vector<const EventType*> number_parts(Trace& trace, const Selection& selection) {
  std::vector<const EventType*> parts;
  for (auto& [id, stream] : trace.streams) {
    for (EventType& type : stream.types) {
      if (!selection.wants(type.name)) continue;
      type.part = static_cast<std::int32_t>(parts.size());
      parts.push_back(&type);
    }
  }
  return parts;
}

struct OpenedStream {
  std::size_t trace = 0;
  std::string path;
};

}  // namespace

Session read_session(const std::vector<TraceFiles>& files, const Selection& selection) {
  Session session;
  std::vector<std::vector<const EventType*>> parts;
  std::vector<OpenedStream> opened;
  for (const TraceFiles& trace_files : files) {
    session.traces.push_back(std::make_unique<Trace>(open_trace(trace_files.metadata)));
    parts.push_back(number_parts(*session.traces.back(), selection));
    for (const std::string& path : trace_files.streams) opened.push_back({session.traces.size() - 1, path});
  }

  session.streams.resize(opened.size());
  session.summaries.resize(opened.size());
  std::vector<std::vector<std::vector<Occurrence>>> found(opened.size());
  for_each_index(opened.size(), selection.threads, [&](std::size_t i) {
    session.streams[i] =
        std::make_unique<Stream>(*session.traces[opened[i].trace], opened[i].path, selection.on_corrupt);
  });
  auto continuity = follow_streams(session.streams, selection.on_corrupt);
  for_each_index(opened.size(), selection.threads, [&](std::size_t i) {
    const std::size_t trace = opened[i].trace;
    session.summaries[i].continuity = std::move(continuity[i]);
    found[i].resize(parts[trace].size());
    session.summaries[i].report = session.streams[i]->scan(selection.window, found[i]);
    session.summaries[i].path = opened[i].path;
    session.summaries[i].trace = trace;
    session.summaries[i].packets = session.streams[i]->packets().size();
  });

  std::map<std::string, std::vector<Source>> sources;
  for (std::size_t i = 0; i < opened.size(); ++i) {
    const std::size_t trace = opened[i].trace;
    for (std::size_t part = 0; part < parts[trace].size(); ++part) {
      sources[parts[trace][part]->name].push_back(
          {session.streams[i].get(), parts[trace][part], trace, std::move(found[i][part])});
    }
  }

  std::vector<std::string> names;
  for (const auto& [name, unused] : sources) names.push_back(name);
  session.tables.resize(names.size());
  for_each_index(names.size(), selection.threads, [&](std::size_t i) {
    session.tables[i] = build_table(names[i], std::move(sources.at(names[i])), selection.columns_of(names[i]));
  });
  return session;
}

}  // namespace ldos::ctf
