// The second pass, over one chunk of time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "census.hpp"
#include "table_writer.hpp"

namespace ldos::ctf {

// Destination of the events of one part of one stream.
struct Route {
  static constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();

  std::size_t queue = kNowhere;  // unchanged if the census found no event
  std::uint64_t tag = 0;         // see Occurrence
};

// Destination of the events of one stream.
struct Routes {
  std::vector<Route> of_part;
  std::vector<std::size_t> tables;  // of each queue
};

// Events of one stream for one table that have been read ahead.
class Queue {
 public:
  void push(const Occurrence& event) { events_.push_back(event); }
  [[nodiscard]] bool empty() const { return head_ == events_.size(); }

  // Those before `end_ns`; all without it.
  [[nodiscard]] std::span<const Occurrence> before(std::optional<std::int64_t> end_ns) const;
  void drop(std::size_t count);
  void sort();

 private:
  std::vector<Occurrence> events_;
  std::size_t head_ = 0;
};

// Reads the events of one stream, a little ahead of what is written.
class Feed {
 public:
  Feed(const Stream& stream, const Segment& start, const Window& window, std::optional<std::int64_t> end_ns,
       const Routes& routes);

  // Continues until `limit` events are waiting or the chunk ends.
  void read(std::size_t limit);

  [[nodiscard]] bool is_at_end() const { return is_at_end_; }
  [[nodiscard]] std::int64_t seen_ns() const { return seen_ns_; }  // no event to come is earlier
  [[nodiscard]] std::size_t waiting() const { return waiting_; }

  [[nodiscard]] const Queue& queue(std::size_t number) const { return queues_[number]; }
  void drop(std::size_t queue, std::size_t count);
  void sort();

 private:
  bool read_packet(std::size_t limit);

  const Stream& stream_;
  const Window& window_;
  std::optional<std::int64_t> end_ns_;
  const Routes& routes_;
  std::vector<Queue> queues_;
  std::size_t packet_;
  Place place_;
  std::int64_t seen_ns_ = std::numeric_limits<std::int64_t>::min();
  std::size_t waiting_ = 0;
  bool is_at_end_ = false;
};

// Data shared by the chunks of a trace.
struct Decoding {
  const Streams& streams;
  const Census& census;
  const Window& window;
  std::vector<Routes> routes;  // by stream
  std::vector<TableBuilder> tables;
};

// Throws Unreadable.
void decode_chunk(Decoding& decoding, std::size_t chunk);

}  // namespace ldos::ctf
