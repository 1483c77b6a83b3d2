#include "message.hpp"

#include <cstddef>

namespace ldos::pingpong {

namespace {

// Operation codes of dds/ddsc/dds_opcodes.h.
constexpr std::uint32_t kEnd = 0x00U << 24U;
constexpr std::uint32_t kAddress = 0x01U << 24U;
constexpr std::uint32_t kKeyOffset = 0x07U << 24U;
constexpr std::uint32_t kFourBytes = 0x03U << 16U;
constexpr std::uint32_t kSequence = 0x07U << 16U;
constexpr std::uint32_t kOfOneByte = 0x01U << 8U;
constexpr std::uint32_t kIsKey = 1U;

// The key's own operation is the third word; its position is given in the eighth.
constexpr std::uint32_t kKeyAt = 2U;
constexpr std::uint32_t kKeySaidAt = 7U;

constexpr std::uint32_t kOps[] = {
    kAddress | kFourBytes, offsetof(Message, number),
    kAddress | kFourBytes | kIsKey, offsetof(Message, key),
    kAddress | kSequence | kOfOneByte, offsetof(Message, octets),
    kEnd,
    kKeyOffset | 1U, kKeyAt,
};

constexpr KeyDescriptor kKeys[] = {{"key", kKeySaidAt, 0}};

constexpr TopicDescriptor kDescriptor = {
    sizeof(Message), alignof(Message), 0, 1, "ldos::PingPong", kKeys, 4, kOps, "", {nullptr, 0}, {nullptr, 0}, 0,
};

}  // namespace

const TopicDescriptor& describe_message() { return kDescriptor; }

OwnMessage::OwnMessage(std::uint32_t size) : octets_(size) {
  message.octets = Octets{size, size, octets_.data(), false};
}

}  // namespace ldos::pingpong
