// The first of two passes over a trace: it counts, so that the second can write in place.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "event_reader.hpp"
#include "stream.hpp"

namespace ldos::ctf {

// Wanted events of one part in one stream.
struct PartTally {
  std::uint64_t rows = 0;
  std::vector<std::uint64_t> elements;  // by leaf; empty where events of variable size had no lists

  PartTally& operator+=(const PartTally& other);
};

// By part; those without events are not in it.
using Tally = std::map<std::size_t, PartTally>;

// The events of one stream that lie in one chunk of time.
struct Segment {
  std::size_t chunk = 0;
  std::size_t packet = 0;  // where its first event lies
  Place begin;
  Tally tally;
};

struct StreamCensus {
  std::vector<Segment> segments;        // of rising chunks
  std::uint64_t events = 0;             // decoded, wanted or not
  std::uint64_t truncated_bytes = 0;    // behind the last whole event of a cut packet
  std::vector<Corruption> corruptions;  // at which packets ended
  std::uint64_t backward_steps = 0;     // events whose time is earlier than the one before
  std::optional<std::int64_t> first_ns;  // time of its first event
  std::optional<std::int64_t> last_ns;   // the latest time of an event

  // Null where the stream has no event in the chunk.
  [[nodiscard]] const Segment* in_chunk(std::size_t chunk) const;
};

struct Census {
  std::vector<StreamCensus> streams;
  std::vector<std::int64_t> cuts;  // chunk i ends before the moment cuts[i]; the last one has no end
  bool in_order = true;            // time goes back in no stream

  [[nodiscard]] std::size_t chunks() const { return cuts.size() + 1; }
};

using Streams = std::vector<std::unique_ptr<Stream>>;

// How work is split. Results do not depend on it.
struct Splitting {
  unsigned threads = 1;
  std::uint64_t chunk_bytes = 4 << 20;  // of a trace that are worth a chunk of their own
};

// Time is cut in chunks of like size; where it goes back, there is one chunk. Throws Unreadable
// where damage, and time that goes back, is to be refused: whatever passes here can be decoded.
Census take_census(const Streams& streams, const Window& window, const Splitting& splitting);

}  // namespace ldos::ctf
