#include "continuity.hpp"

#include <algorithm>
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

// What tells a stream from others, in every file it was cut into.
struct StreamKey {
  std::string trace;  // uuid, or where the metadata lies
  std::uint64_t stream_class = 0;
  std::optional<std::uint64_t> instance;
  std::string file;  // where there is no instance number

  auto operator<=>(const StreamKey&) const = default;
};

struct Member {
  std::size_t file = 0;
  std::size_t index = 0;
  const Packet* packet = nullptr;
};

// Without instance numbers files are streams, but not where the same packet is looked for.
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

// Follows a counter of lost events. It may wrap, and LTTng's is seen to step back and return:
// differences are signed, and only what goes beyond the highest value so far is a new loss.
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

// Packets that a sequence number jumps over; it may wrap, too.
std::uint64_t packets_between(const Packet& before, const Packet& packet) {
  if (!packet.sequence || !before.sequence) return 0;
  const auto step = static_cast<std::int64_t>(sign_extend(*packet.sequence - *before.sequence, packet.sequence_bits));
  return step > 1 ? static_cast<std::uint64_t>(step - 1) : 0;
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
      std::stable_sort(members.begin(), members.end(), is_before);
      find_gaps(members);
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

  // By time; copies of a packet side by side, the longest first.
  [[nodiscard]] bool is_earlier(const Member& a, const Member& b) const {
    const auto place = [](const Packet& packet) {
      return std::tuple(packet.begin_ns.value_or(0), packet.sequence.value_or(0));
    };
    if (place(*a.packet) != place(*b.packet)) return place(*a.packet) < place(*b.packet);
    const int order = a.packet->instance ? 0 : compare(a, b);
    return order != 0 ? order < 0 : a.packet->content_bits > b.packet->content_bits;
  }

  // The bytes that both have.
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
    const Packet* before = nullptr;
    LossCounter lost;
    for (const Member& member : members) {
      const Packet& packet = *member.packet;
      Continuity& result = result_[member.file];
      // What was lost before the first packet there is belongs to packets that are not here.
      if (before == nullptr && packet.discarded && packet.sequence.value_or(0) != 0) {
        lost.start_at(*packet.discarded);
        result.earlier_events += *packet.discarded;
      }
      Gap gap;
      const std::int64_t begin = packet.begin_ns.value_or(0);
      gap.from_ns = before != nullptr ? before->end_ns.value_or(begin) : begin;
      gap.to_ns = packet.end_ns.value_or(begin);
      if (packet.discarded) gap.events = lost.advance_to(*packet.discarded, packet.discarded_bits);
      if (before != nullptr) gap.packets = packets_between(*before, packet);
      if (gap.events != 0 || gap.packets != 0) result.gaps.push_back(gap);
      before = &packet;
    }
  }

  const std::vector<std::unique_ptr<Stream>>& files_;
  OnCorrupt on_corrupt_;
  std::vector<Continuity> result_;
  std::vector<std::set<std::size_t>> repeated_;  // indices into the packets of each file
};

}  // namespace

std::vector<Continuity> follow_streams(const std::vector<std::unique_ptr<Stream>>& files, OnCorrupt on_corrupt) {
  return Follower(files, on_corrupt).run();
}

}  // namespace ldos::ctf
