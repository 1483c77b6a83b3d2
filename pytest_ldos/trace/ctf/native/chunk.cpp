#include "chunk.hpp"

#include <algorithm>
#include <limits>

#include "unreadable.hpp"

namespace ldos::ctf {

namespace {

// Events read ahead, of all streams together: their bytes and columns should stay in the second cache.
constexpr std::size_t kAhead = 8192;
constexpr std::size_t kLeastAhead = 256;

bool is_earlier(const Occurrence& a, const Occurrence& b) { return a.time_ns < b.time_ns; }

// Streams are read a little ahead; events that no later event can precede are merged and written.
class ChunkDecoder {
 public:
  ChunkDecoder(Decoding& decoding, std::size_t chunk) : in_order_(decoding.census.in_order) {
    std::optional<std::int64_t> end_ns;
    if (chunk < decoding.census.cuts.size()) end_ns = decoding.census.cuts[chunk];
    std::vector<std::vector<Input>> inputs(decoding.tables.size());
    for (std::size_t i = 0; i < decoding.streams.size(); ++i) {
      const Segment* start = decoding.census.streams[i].in_chunk(chunk);
      if (start == nullptr) continue;
      const Routes& routes = decoding.routes[i];
      for (std::size_t queue = 0; queue < routes.tables.size(); ++queue) {
        inputs[routes.tables[queue]].push_back({feeds_.size(), queue, 0});
      }
      feeds_.emplace_back(*decoding.streams[i], *start, decoding.window, end_ns, routes);
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].empty()) outputs_.push_back({TableWriter(decoding.tables[i], chunk), std::move(inputs[i])});
    }
  }

  void run() {
    if (in_order_) {
      const std::size_t ahead = std::max(kLeastAhead, kAhead / std::max<std::size_t>(1, feeds_.size()));
      while (std::optional<std::int64_t> end_ns = read_ahead(ahead)) write(end_ns);
    } else {
      for (Feed& feed : feeds_) {
        feed.read(std::numeric_limits<std::size_t>::max());
        feed.sort();
      }
    }
    write(std::nullopt);
    for (Output& output : outputs_) output.writer.finish();
  }

 private:
  struct Input {
    std::size_t feed;
    std::size_t queue;
    std::size_t taken;  // events of the run being written
  };

  struct Output {
    TableWriter writer;
    std::vector<Input> inputs;
  };

  // Returns the time before which every event has been read; none if all have been.
  std::optional<std::int64_t> read_ahead(std::size_t ahead) {
    std::optional<std::int64_t> next_ns;
    for (Feed& feed : feeds_) {
      if (!feed.is_at_end() && (feed.waiting() < ahead / 2 || feed.seen_ns() <= written_ns_)) {
        feed.read(feed.waiting() + ahead);
      }
      if (!feed.is_at_end()) next_ns = std::min(next_ns.value_or(feed.seen_ns()), feed.seen_ns());
    }
    written_ns_ = next_ns.value_or(written_ns_);
    return next_ns;
  }

  void write(std::optional<std::int64_t> end_ns) {
    for (Output& output : outputs_) {
      runs_.clear();
      for (Input& input : output.inputs) {
        const auto run = feeds_[input.feed].queue(input.queue).before(end_ns);
        input.taken = run.size();
        if (!run.empty()) runs_.push_back(run);
      }
      if (runs_.empty()) continue;
      output.writer.write(merger_.merge(runs_));
      for (const Input& input : output.inputs) feeds_[input.feed].drop(input.queue, input.taken);
    }
  }

  bool in_order_;
  std::vector<Feed> feeds_;
  std::vector<Output> outputs_;
  std::int64_t written_ns_ = std::numeric_limits<std::int64_t>::min();
  Merger merger_;
  std::vector<std::span<const Occurrence>> runs_;
};

}  // namespace

std::span<const Occurrence> Queue::before(std::optional<std::int64_t> end_ns) const {
  const std::span<const Occurrence> waiting(events_.data() + head_, events_.size() - head_);
  if (!end_ns || waiting.empty() || waiting.back().time_ns < *end_ns) return waiting;
  const auto end = std::lower_bound(waiting.begin(), waiting.end(), Occurrence{*end_ns, 0}, is_earlier);
  return waiting.first(static_cast<std::size_t>(end - waiting.begin()));
}

void Queue::drop(std::size_t count) {
  head_ += count;
  if (head_ < events_.size() / 2) return;
  events_.erase(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(head_));
  head_ = 0;
}

void Queue::sort() {
  if (!std::is_sorted(events_.begin(), events_.end(), is_earlier)) {
    std::stable_sort(events_.begin(), events_.end(), is_earlier);
  }
}

Feed::Feed(const Stream& stream, const Segment& start, const Window& window, std::optional<std::int64_t> end_ns,
           const Routes& routes)
    : stream_(stream),
      window_(window),
      end_ns_(end_ns),
      routes_(routes),
      queues_(routes.tables.size()),
      packet_(start.packet),
      place_(start.begin) {}

void Feed::read(std::size_t limit) {
  const auto& packets = stream_.packets();
  while (packet_ < packets.size()) {
    if (stream_.may_hold(window_, packet_) && !read_packet(limit)) return;
    ++packet_;
    if (packet_ < packets.size()) place_ = first_place(packets[packet_]);
  }
  is_at_end_ = true;
}

// False if the packet has not been read to its end.
bool Feed::read_packet(std::size_t limit) {
  const Packet& packet = stream_.packets()[packet_];
  const std::uint64_t first_bit = packet.offset * 8;
  const std::int64_t end_ns = end_ns_.value_or(std::numeric_limits<std::int64_t>::max());
  const Route* const routes = routes_.of_part.data();
  Queue* const queues = queues_.data();
  std::size_t waiting = waiting_;
  std::int64_t seen_ns = seen_ns_;
  bool is_whole = true;
  EventReader reader(stream_, packet, place_);
  reader.run([&](const Met& met) {
    if (met.time_ns >= end_ns && end_ns_) [[unlikely]] {
      is_at_end_ = true;
      return is_whole = false;
    }
    if (met.entry.part != kNone && window_.holds(met.time_ns)) {
      if (waiting >= limit) [[unlikely]] return is_whole = false;
      const Route& route = routes[met.entry.part];
      if (route.queue == Route::kNowhere) [[unlikely]] throw changed(stream_.path());
      queues[route.queue].push({met.time_ns, route.tag | (first_bit + met.bit)});
      ++waiting;
    }
    seen_ns = met.time_ns;
    return true;
  });
  waiting_ = waiting;
  seen_ns_ = seen_ns;
  place_ = reader.place();
  return is_whole;
}

void Feed::drop(std::size_t queue, std::size_t count) {
  queues_[queue].drop(count);
  waiting_ -= count;
}

void Feed::sort() {
  for (Queue& queue : queues_) queue.sort();
}

void decode_chunk(Decoding& decoding, std::size_t chunk) { ChunkDecoder(decoding, chunk).run(); }

}  // namespace ldos::ctf
