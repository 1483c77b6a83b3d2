// Several traces read together: every table, and what was lost on the way.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "stream.hpp"
#include "table.hpp"
#include "trace.hpp"

namespace ldos::ctf {

struct TraceFiles {
  std::string metadata;
  std::vector<std::string> streams;
};

// What the caller wants; nothing else is materialised.
struct Selection {
  std::optional<std::set<std::string>> events;            // names; unset: all
  std::set<std::string> fields;                           // columns of every table; empty: all
  std::map<std::string, std::set<std::string>> fields_of; // columns of single tables
  Window window;
  unsigned threads = 1;
  OnCorrupt on_corrupt = OnCorrupt::refuse;

  [[nodiscard]] bool wants(const std::string& event) const { return !events || events->contains(event); }
  [[nodiscard]] const std::set<std::string>& columns_of(const std::string& event) const {
    const auto found = fields_of.find(event);
    return found == fields_of.end() ? fields : found->second;
  }
};

struct StreamSummary {
  std::string path;
  std::size_t trace = 0;
  std::size_t packets = 0;
  StreamReport report;
  Continuity continuity;
};

struct Session {
  std::vector<std::unique_ptr<Trace>> traces;
  std::vector<std::unique_ptr<Stream>> streams;  // tables hold views into these
  std::vector<StreamSummary> summaries;
  std::vector<Table> tables;
};

// Throws Unreadable.
Session read_session(const std::vector<TraceFiles>& files, const Selection& selection);

}  // namespace ldos::ctf
