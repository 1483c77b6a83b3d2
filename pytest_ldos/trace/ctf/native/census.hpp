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
  std::vector<std::uint64_t> elements;  // by leaf; empty if events of variable size had no lists

  PartTally& operator+=(const PartTally& other);
};

// By part; those without events are not in it.
using Tally = std::map<std::size_t, PartTally>;

// The events of one stream in one chunk of time.
struct Segment {
  std::size_t chunk = 0;
  std::size_t packet = 0;  // position of its first event
  Place begin;
  Tally tally;
};

struct StreamCensus {
  std::vector<Segment> segments;        // of rising chunks
  std::uint64_t events = 0;             // decoded, wanted or not
  std::uint64_t truncated_bytes = 0;    // after the last whole event of a truncated packet
  std::vector<Corruption> corruptions;  // at which packets ended
  std::uint64_t backward_steps = 0;     // events whose time is earlier than the one before
  std::optional<std::int64_t> first_ns;  // time of its first event
  std::optional<std::int64_t> last_ns;   // the latest time of an event

  // Null if the stream has no event in the chunk.
  [[nodiscard]] const Segment* in_chunk(std::size_t chunk) const;
};

struct Census {
  std::vector<StreamCensus> streams;
  std::vector<std::int64_t> cuts;  // chunk i ends before the time cuts[i]; the last one has no end
  bool in_order = true;            // time goes back in no stream

  [[nodiscard]] std::size_t chunks() const { return cuts.size() + 1; }
};

using Streams = std::vector<std::unique_ptr<Stream>>;

// Packets of one stream that are read at once by one thread.
struct Run {
  std::size_t stream = 0;
  std::size_t first = 0;
  std::size_t last = 0;
};

// Splits the packets that may have events in `window` into runs of at least `run_bytes`, except the last of a stream.
std::vector<Run> find_runs(const Streams& streams, const Window& window, std::uint64_t run_bytes);

// How work is split. Results do not depend on it.
struct Splitting {
  unsigned threads = 1;
  std::uint64_t chunk_bytes = 4 << 20;  // of a trace that are worth a chunk of their own
};

// Splits time into chunks of similar size, or one chunk if it goes back. Throws Unreadable
// if damage and time that goes back are to be refused: a trace that passes can be decoded.
Census take_census(const Streams& streams, const Window& window, const Splitting& splitting);

}  // namespace ldos::ctf
