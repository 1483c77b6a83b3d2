#include "continuity.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "bits.hpp"
#include "stream.hpp"
#include "unreadable.hpp"

namespace ldos::ctf {

namespace {

// The identity of a stream, in every file it was split into.
struct StreamKey {
  std::string trace;  // uuid, or the path of the metadata
  std::uint64_t stream_class = 0;
  std::optional<std::uint64_t> instance;
  std::string file;  // if there is no instance number

  auto operator<=>(const StreamKey&) const = default;
};

struct Member {
  std::size_t file = 0;
  std::size_t index = 0;
  const Packet* packet = nullptr;
};

// Without instance numbers, each file is a stream, except in the search for duplicate packets.
enum class FilesAre : std::uint8_t { streams, copies };

StreamKey key_of(const Stream& file, const Packet& packet, FilesAre files_are) {
  StreamKey key;
  const auto& uuid = file.trace().declared.uuid;
  key.trace = uuid ? std::string(uuid->begin(), uuid->end()) : file.trace().metadata_path;
  key.stream_class = packet.type->number;
  key.instance = packet.instance;
  if (!key.instance && files_are == FilesAre::streams) key.file = std::filesystem::path(file.path()).filename();
  return key;
}

// Follows a counter of lost events. It may wrap, and LTTng's sometimes steps back and returns:
// differences are signed, and only counts above the highest value so far are new losses.
class LossCounter {
 public:
  void start_at(std::uint64_t counter) { last_ = counter; }

  std::uint64_t advance_to(std::uint64_t counter, std::uint32_t bits) {
    total_ += sign_extend(counter - last_, bits);
    last_ = counter;
    const auto risen = static_cast<std::int64_t>(total_ - highest_);
    if (risen <= 0) return 0;
    highest_ = total_;
    return static_cast<std::uint64_t>(risen);
  }

 private:
  std::uint64_t last_ = 0;
  std::uint64_t total_ = 0;  // modulo 2^64
  std::uint64_t highest_ = 0;
};

// The difference of two packets' numbers, which may wrap; 0 if they have none.
std::int64_t step_between(const Packet& before, const Packet& packet) {
  if (!packet.sequence || !before.sequence) return 0;
  return static_cast<std::int64_t>(sign_extend(*packet.sequence - *before.sequence, packet.sequence_bits));
}

class Follower {
 public:
  Follower(const std::vector<std::unique_ptr<Stream>>& files, OnCorrupt on_corrupt)
      : files_(files), on_corrupt_(on_corrupt), result_(files.size()), repeated_(files.size()) {}

  std::vector<Continuity> run() {
    const auto is_before = [this](const Member& a, const Member& b) { return is_earlier(a, b); };
    for (auto& [key, members] : packets_by_key(FilesAre::copies)) {
      std::stable_sort(members.begin(), members.end(), is_before);
      take_out_repeated(members);
    }
    for (auto& [key, members] : packets_by_key(FilesAre::streams)) {
      check_file_order(members);
      std::stable_sort(members.begin(), members.end(), is_before);
      find_gaps(members);
      find_edges(members);
    }
    for (std::size_t i = 0; i < files_.size(); ++i) {
      result_[i].repeated_packets = repeated_[i].size();
      files_[i]->drop_packets(repeated_[i]);
    }
    return std::move(result_);
  }

 private:
  [[nodiscard]] std::map<StreamKey, std::vector<Member>> packets_by_key(FilesAre files_are) const {
    std::map<StreamKey, std::vector<Member>> found;
    for (std::size_t file = 0; file < files_.size(); ++file) {
      const auto& packets = files_[file]->packets();
      for (std::size_t i = 0; i < packets.size(); ++i) {
        if (repeated_[file].contains(i)) continue;
        found[key_of(*files_[file], packets[i], files_are)].push_back({file, i, &packets[i]});
      }
    }
    return found;
  }

  // By time, with copies of a packet next to each other, the longest first.
  [[nodiscard]] bool is_earlier(const Member& a, const Member& b) const {
    const auto place = [](const Packet& packet) {
      return std::tuple(packet.begin_ns.value_or(0), packet.sequence.value_or(0));
    };
    if (place(*a.packet) != place(*b.packet)) return place(*a.packet) < place(*b.packet);
    const int order = a.packet->instance ? 0 : compare(a, b);
    return order != 0 ? order < 0 : a.packet->content_bits > b.packet->content_bits;
  }

  // The common bytes of both.
  [[nodiscard]] int compare(const Member& a, const Member& b) const {
    const std::uint64_t bits = std::min(a.packet->content_bits, b.packet->content_bits);
    return std::memcmp(files_[a.file]->data() + a.packet->offset, files_[b.file]->data() + b.packet->offset, bits / 8);
  }

  [[nodiscard]] bool is_same(const Member& a, const Member& b) const {
    const Packet& one = *a.packet;
    const Packet& other = *b.packet;
    if (!one.begin_ns || one.begin_ns != other.begin_ns || one.sequence != other.sequence) return false;
    if (one.instance && one.sequence) return true;
    return (one.content_bits == other.content_bits || one.truncated || other.truncated) && compare(a, b) == 0;
  }

  void take_out_repeated(const std::vector<Member>& members) {
    const Member* kept = nullptr;
    for (const Member& member : members) {
      if (kept == nullptr || !is_same(*kept, member)) {
        kept = &member;
        continue;
      }
      if (on_corrupt_ == OnCorrupt::refuse) refuse(*kept, member);
      repeated_[member.file].insert(member.index);
    }
  }

  [[noreturn]] void refuse(const Member& first, const Member& second) const {
    const Member& earlier = first.file <= second.file ? first : second;
    const Member& later = first.file <= second.file ? second : first;
    throw Unreadable(files_[later.file]->path(), later.packet->offset,
                     "a packet that is also in " + files_[earlier.file]->path() + " at byte " +
                         std::to_string(earlier.packet->offset) + ": the stream is here twice");
  }

  void find_gaps(const std::vector<Member>& members) {
    const Member* last = nullptr;
    LossCounter lost;
    for (const Member& member : members) {
      const Packet& packet = *member.packet;
      const Packet* before = last != nullptr ? last->packet : nullptr;
      Continuity& result = result_[member.file];
      // Losses before the first packet belong to packets that are missing.
      if (before == nullptr && packet.discarded && packet.sequence.value_or(0) != 0) {
        lost.start_at(*packet.discarded);
        result.earlier_events += *packet.discarded;
      }
      Gap gap;
      const std::int64_t begin = packet.begin_ns.value_or(0);
      gap.from_ns = before != nullptr ? before->end_ns.value_or(begin) : begin;
      gap.to_ns = packet.end_ns.value_or(begin);
      if (packet.discarded) gap.events = lost.advance_to(*packet.discarded, packet.discarded_bits);
      if (before != nullptr) {
        const std::int64_t step = step_between(*before, packet);
        if (step < 0) step_back(*last, begin, before->begin_ns.value_or(begin));
        if (step > 1) gap.packets = static_cast<std::uint64_t>(step - 1);
      }
      if (gap.events != 0 || gap.packets != 0) result.gaps.push_back(gap);
      last = &member;
    }
  }

  // Packets without numbers are in the order of their file; the others in that of their numbers.
  void check_file_order(const std::vector<Member>& members) {
    const Member* before = nullptr;
    for (const Member& member : members) {
      const bool follows = before != nullptr && before->file == member.file && before->index + 1 == member.index;
      if (follows && step_between(*before->packet, *member.packet) == 0 &&
          !is_in_file_order(*files_[member.file], member.index)) {
        step_back(member, *before->packet->begin_ns, *member.packet->begin_ns);
      }
      before = &member;
    }
  }

  void step_back(const Member& member, std::int64_t from_ns, std::int64_t to_ns) {
    if (on_corrupt_ == OnCorrupt::refuse) {
      throw Unreadable(files_[member.file]->path(), member.packet->offset, backward_reason(from_ns, to_ns));
    }
    ++result_[member.file].backward_steps;
  }

  // Begin and end of the stream, and its losses before.
  void find_edges(const std::vector<Member>& members) {
    const Member& first = members.front();
    const Member& last = members.back();
    const std::uint64_t number = first.packet->sequence.value_or(0);
    Continuity& begin = result_[first.file];
    begin.begin_ns = first.packet->begin_ns;
    begin.earlier_packets += number;
    begin.is_numbered = number != 0 || (first.packet->sequence && (members.size() == 1 || last.packet->sequence != 0U));
    result_[last.file].has_last = true;
    result_[last.file].end_ns = last.packet->truncated ? last.packet->begin_ns : last.packet->end_ns;
  }

  const std::vector<std::unique_ptr<Stream>>& files_;
  OnCorrupt on_corrupt_;
  std::vector<Continuity> result_;
  std::vector<std::set<std::size_t>> repeated_;  // indices into the packets of each file
};

}  // namespace

std::string backward_reason(std::int64_t from_ns, std::int64_t to_ns) {
  char text[128];
  const std::uint64_t by_ns = static_cast<std::uint64_t>(from_ns) - static_cast<std::uint64_t>(to_ns);
  (void)std::snprintf(text, sizeof text, "time goes back by %.9g s in this stream: its clock wrapped, or was set",
                      static_cast<double>(by_ns) * 1e-9);
  return text;
}

bool is_in_file_order(const Stream& file, std::size_t packet) {
  if (packet == 0) return true;
  const auto& begin_ns = file.packets()[packet].begin_ns;
  const auto& before_ns = file.packets()[packet - 1].begin_ns;
  return !begin_ns || !before_ns || *begin_ns >= *before_ns;
}

std::vector<Continuity> follow_streams(const std::vector<std::unique_ptr<Stream>>& files, OnCorrupt on_corrupt) {
  return Follower(files, on_corrupt).run();
}

}  // namespace ldos::ctf
