// Several traces read together: all tables and losses.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "census.hpp"
#include "continuity.hpp"
#include "stream.hpp"
#include "table.hpp"
#include "trace.hpp"

namespace ldos::ctf {

struct TraceFiles {
  std::string metadata;
  std::vector<std::string> streams;
};

// The caller's selection; nothing else is materialised.
struct Selection {
  std::optional<std::set<std::string>> events;            // names; unset: all
  std::set<std::string> fields;                           // columns of every table; empty: all
  std::map<std::string, std::set<std::string>> fields_of; // columns of single tables
  Window window;
  Splitting splitting;

  [[nodiscard]] const std::set<std::string>& columns_of(const std::string& event) const {
    const auto found = fields_of.find(event);
    return found == fields_of.end() ? fields : found->second;
  }
};

struct StreamSummary {
  std::string path;
  std::size_t trace = 0;
  std::size_t packets = 0;
  std::uint64_t events = 0;           // decoded, wanted or not
  std::uint64_t truncated_bytes = 0;  // after the last whole event of a truncated packet
  std::uint64_t missing_bytes = 0;    // of the content of a truncated packet, after the file's end
  std::uint64_t missing_padding = 0;  // of the padding after its content
  std::size_t foreign_packets = 0;    // of another uuid than the metadata's
  std::uint64_t backward_steps = 0;   // times that are earlier than the one before
  std::uint64_t channel = 0;          // number of the stream's class
  std::optional<std::int64_t> missing_before_ns;  // events before it may be missing; unset: none are
  std::optional<std::int64_t> missing_after_ns;   // the same after it
  std::vector<Corruption> corruptions;
  Continuity continuity;
};

// Traces whose files are mapped, and the headers of whose packets are known.
struct Opened {
  std::vector<std::unique_ptr<Trace>> traces;
  std::vector<std::unique_ptr<Parts>> no_parts;  // of each trace
  std::vector<bool> is_rotated;                  // of each trace
  Streams streams;
  std::vector<Continuity> continuity;  // of each stream

  Opened() = default;
  Opened(Opened&&) = default;
  Opened& operator=(Opened&&) = default;
};

// What was read at once; it refers to `Opened`.
struct Session {
  std::vector<std::unique_ptr<Parts>> parts;  // of each trace
  Streams streams;                            // tables hold views into these
  std::vector<StreamSummary> summaries;
  std::vector<Table> tables;
};

// Time that a packet covers, by its header.
struct PacketSpan {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t bytes = 0;  // of its content
};

// Maps every stream of every trace, and reads its packets' headers. Throws Unreadable.
Opened open_session(const std::vector<TraceFiles>& files, OnCorrupt on_corrupt, unsigned threads = 1);

// The spans of all packets with times, by stream.
std::vector<PacketSpan> spans_of(const Opened& opened);

// Throws Unreadable.
Session read_session(const Opened& opened, const Selection& selection);

}  // namespace ldos::ctf
