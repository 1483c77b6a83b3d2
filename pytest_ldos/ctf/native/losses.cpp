#include "losses.hpp"

#include "bits.hpp"

namespace ldos::ctf {

namespace {

// Follows a counter of lost events. It may wrap, and LTTng's is seen to step back and return:
// differences are signed, and only what goes beyond the highest value so far is a new loss.
class LossCounter {
 public:
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

}  // namespace

std::vector<Gap> find_gaps(const std::vector<Packet>& packets) {
  std::vector<Gap> gaps;
  const Packet* before = nullptr;
  LossCounter lost;
  for (const Packet& packet : packets) {
    Gap gap;
    const std::int64_t begin = packet.begin_ns.value_or(0);
    gap.from_ns = before != nullptr ? before->end_ns.value_or(begin) : begin;
    gap.to_ns = packet.end_ns.value_or(begin);
    if (packet.discarded) gap.events = lost.advance_to(*packet.discarded, packet.discarded_bits);
    if (before != nullptr && packet.sequence && before->sequence && *packet.sequence > *before->sequence + 1) {
      gap.packets = *packet.sequence - *before->sequence - 1;
    }
    if (gap.events != 0 || gap.packets != 0) gaps.push_back(gap);
    before = &packet;
  }
  return gaps;
}

}  // namespace ldos::ctf
