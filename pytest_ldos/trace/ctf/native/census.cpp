#include "census.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "continuity.hpp"
#include "parallel.hpp"
#include "unreadable.hpp"

namespace ldos::ctf {

namespace {

constexpr std::uint64_t kRunBytes = 1 << 20;            // counted at once by one thread
constexpr std::uint64_t kChunksOfAThread = 4;           // so that a slow one delays no other for long
constexpr std::uint64_t kGrain = 256 << 10;             // bytes whose moment is estimated

std::uint64_t bytes_of(const Packet& packet) { return packet.content_bits / 8; }

// Times that split the packets into parts of similar size, with events assumed to be evenly spaced in their packet.
std::vector<std::int64_t> cut_time(const Streams& streams, const Window& window, const Splitting& splitting) {
  if (splitting.threads == 1) return {};
  std::vector<std::int64_t> moments;
  for (const auto& stream : streams) {
    for (std::size_t number = 0; number < stream->packets().size(); ++number) {
      const Packet& packet = stream->packets()[number];
      if (!packet.begin_ns || !stream->may_hold(window, number)) continue;
      const std::uint64_t grains = bytes_of(packet) / kGrain + 1;
      const auto begin = static_cast<std::uint64_t>(*packet.begin_ns);
      const auto end = static_cast<std::uint64_t>(std::max(packet.end_ns.value_or(*packet.begin_ns), *packet.begin_ns));
      for (std::uint64_t i = 0; i < grains; ++i) {
        moments.push_back(static_cast<std::int64_t>(begin + (end - begin) / grains * i));
      }
    }
  }
  std::sort(moments.begin(), moments.end());
  const std::uint64_t worthwhile = moments.size() * kGrain / splitting.chunk_bytes;
  const std::uint64_t chunks = std::min(kChunksOfAThread * splitting.threads, worthwhile);
  std::vector<std::int64_t> cuts;
  for (std::uint64_t i = 1; i < chunks; ++i) {
    const std::int64_t moment = moments[moments.size() * i / chunks];
    if (moment > (cuts.empty() ? moments.front() : cuts.back())) cuts.push_back(moment);
  }
  return cuts;
}

struct RunCensus {
  std::vector<Segment> segments;
  std::int64_t first_ns = std::numeric_limits<std::int64_t>::min();
  std::int64_t last_ns = std::numeric_limits<std::int64_t>::min();    // of the last event
  std::int64_t latest_ns = std::numeric_limits<std::int64_t>::min();  // the same, unless time goes back
  std::uint64_t events = 0;
  std::uint64_t truncated_bytes = 0;
  std::vector<Corruption> corruptions;
  std::uint64_t backward_steps = 0;
  bool in_order = true;
};

class Counter {
 public:
  Counter(const Stream& stream, const Window& window, const std::vector<std::int64_t>& cuts)
      : stream_(stream), window_(window), cuts_(cuts), rows_(stream.parts().all.size(), 0) {}

  RunCensus count(const Run& run) {
    for (std::size_t packet = run.first; packet <= run.last; ++packet) {
      if (stream_.may_hold(window_, packet)) count(packet);
    }
    leave();
    return std::move(result_);
  }

 private:
  void count(std::size_t packet) {
    stream_.populate(stream_.packets()[packet]);
    EventReader reader(stream_, stream_.packets()[packet], first_place(stream_.packets()[packet]));
    result_.in_order &= is_in_file_order(stream_, packet);
    std::int64_t last_ns = earliest(packet);
    std::uint64_t events = 0;
    std::uint64_t* const rows = rows_.data();
    reader.run([&](const Met& met) {
      ++events;
      if (met.time_ns < last_ns) [[unlikely]] step_back(packet, met, last_ns);
      last_ns = met.time_ns;
      if (met.time_ns >= next_cut_) [[unlikely]] enter(packet, reader.place(), met.time_ns);
      if (met.entry.part != kNone && window_.holds(met.time_ns)) {
        ++rows[met.entry.part];
        if (met.entry.bytes == EventEntry::kVariable && !reader.lists().empty()) count_elements(met.entry.part, reader);
      }
      return true;
    });
    if (events != 0) result_.last_ns = last_ns;
    result_.latest_ns = std::max(result_.latest_ns, result_.last_ns);
    result_.events += events;
    result_.truncated_bytes += reader.truncated_bytes();
    if (reader.corruption()) result_.corruptions.push_back(*reader.corruption());
  }

  // The earliest time of an event of a packet: that of the packet's header and that of the previous event.
  [[nodiscard]] std::int64_t earliest(std::size_t packet) const {
    constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();
    const std::int64_t begin_ns = stream_.packets()[packet].begin_ns.value_or(kNone);
    return is_in_file_order(stream_, packet) ? std::max(begin_ns, result_.last_ns) : begin_ns;
  }

  [[gnu::noinline, gnu::cold]] void step_back(std::size_t packet, const Met& met, std::int64_t from_ns) {
    if (stream_.on_corrupt() == OnCorrupt::refuse) {
      const std::uint64_t at = stream_.packets()[packet].offset + met.bit / 8;
      throw Unreadable(stream_.path(), at, backward_reason(from_ns, met.time_ns));
    }
    result_.latest_ns = std::max(result_.latest_ns, from_ns);
    result_.in_order = false;
    ++result_.backward_steps;
  }

  // Begins the segment of the chunk that contains `time_ns`, if it is another one.
  [[gnu::noinline]] void enter(std::size_t packet, const Place& place, std::int64_t time_ns) {
    const auto cut = std::upper_bound(cuts_.begin(), cuts_.end(), time_ns);
    next_cut_ = cut == cuts_.end() ? std::numeric_limits<std::int64_t>::max() : *cut;
    const auto chunk = static_cast<std::size_t>(cut - cuts_.begin());
    if (result_.segments.empty()) result_.first_ns = time_ns;
    if (!result_.segments.empty() && result_.segments.back().chunk == chunk) return;
    leave();
    result_.segments.push_back({chunk, packet, place, {}});
  }

  // Ends the last segment.
  void leave() {
    for (std::size_t part = 0; part < rows_.size(); ++part) {
      if (rows_[part] != 0) result_.segments.back().tally[part].rows = std::exchange(rows_[part], 0);
    }
  }

  [[gnu::noinline]] void count_elements(std::int32_t number, const EventReader& reader) {
    const auto part = static_cast<std::size_t>(number);
    std::vector<std::uint64_t>& elements = result_.segments.back().tally[part].elements;
    elements.resize(stream_.parts().all[part].type->layout.leaves.size());
    reader.lists().add_to(elements);
  }

  const Stream& stream_;
  const Window& window_;
  const std::vector<std::int64_t>& cuts_;
  RunCensus result_;
  std::vector<std::uint64_t> rows_;  // of the last segment, by part
  std::int64_t next_cut_ = std::numeric_limits<std::int64_t>::min();
};

void add(Tally& tally, const Tally& other) {
  for (const auto& [part, counts] : other) tally[part] += counts;
}

void append(StreamCensus& census, RunCensus run) {
  census.events += run.events;
  census.truncated_bytes += run.truncated_bytes;
  census.backward_steps += run.backward_steps;
  if (!run.segments.empty()) {
    census.first_ns = std::min(census.first_ns.value_or(run.first_ns), run.first_ns);
    census.last_ns = std::max(census.last_ns.value_or(run.latest_ns), run.latest_ns);
  }
  std::move(run.corruptions.begin(), run.corruptions.end(), std::back_inserter(census.corruptions));
  for (Segment& segment : run.segments) {
    if (!census.segments.empty() && census.segments.back().chunk == segment.chunk) {
      add(census.segments.back().tally, segment.tally);
    } else {
      census.segments.push_back(std::move(segment));
    }
  }
}

// Notes that a run of packets begins before the last event of the one before it.
void step_back(const Stream& stream, std::size_t packet, const RunCensus& before, RunCensus& run) {
  if (stream.on_corrupt() == OnCorrupt::refuse) {
    throw Unreadable(stream.path(), stream.packets()[packet].offset, backward_reason(before.last_ns, run.first_ns));
  }
  ++run.backward_steps;
}

// Makes one chunk of all.
void join_chunks(Census& census) {
  census.cuts.clear();
  for (StreamCensus& stream : census.streams) {
    if (stream.segments.empty()) continue;
    for (std::size_t i = 1; i < stream.segments.size(); ++i) add(stream.segments[0].tally, stream.segments[i].tally);
    stream.segments.resize(1);
    stream.segments[0].chunk = 0;
  }
}

}  // namespace

PartTally& PartTally::operator+=(const PartTally& other) {
  rows += other.rows;
  elements.resize(std::max(elements.size(), other.elements.size()));
  for (std::size_t i = 0; i < other.elements.size(); ++i) elements[i] += other.elements[i];
  return *this;
}

const Segment* StreamCensus::in_chunk(std::size_t chunk) const {
  const auto is_before = [](const Segment& segment, std::size_t wanted) { return segment.chunk < wanted; };
  const auto found = std::lower_bound(segments.begin(), segments.end(), chunk, is_before);
  return found != segments.end() && found->chunk == chunk ? &*found : nullptr;
}

std::vector<Run> find_runs(const Streams& streams, const Window& window, std::uint64_t run_bytes) {
  std::vector<Run> runs;
  for (std::size_t stream = 0; stream < streams.size(); ++stream) {
    std::uint64_t bytes = run_bytes;
    const auto& packets = streams[stream]->packets();
    for (std::size_t packet = 0; packet < packets.size(); ++packet) {
      if (!streams[stream]->may_hold(window, packet)) continue;
      if (bytes >= run_bytes) {
        runs.push_back({stream, packet, packet});
        bytes = 0;
      }
      runs.back().last = packet;
      bytes += bytes_of(packets[packet]);
    }
  }
  return runs;
}

Census take_census(const Streams& streams, const Window& window, const Splitting& splitting) {
  Census census;
  census.streams.resize(streams.size());
  census.cuts = cut_time(streams, window, splitting);
  const std::vector<Run> runs = find_runs(streams, window, kRunBytes);
  std::vector<RunCensus> counted(runs.size());
  for_each_index(runs.size(), splitting.threads, [&](std::size_t i) {
    counted[i] = Counter(*streams[runs[i].stream], window, census.cuts).count(runs[i]);
  });
  std::vector<const RunCensus*> before(streams.size(), nullptr);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Stream& stream = *streams[runs[i].stream];
    const RunCensus*& last = before[runs[i].stream];
    census.in_order &= counted[i].in_order;
    if (counted[i].events != 0) {
      if (last != nullptr && counted[i].first_ns < last->last_ns) {
        if (is_in_file_order(stream, runs[i].first)) step_back(stream, runs[i].first, *last, counted[i]);
        census.in_order = false;
      }
      last = &counted[i];
    }
  }
  for (std::size_t i = 0; i < runs.size(); ++i) append(census.streams[runs[i].stream], std::move(counted[i]));
  if (!census.in_order) join_chunks(census);
  return census;
}

}  // namespace ldos::ctf
