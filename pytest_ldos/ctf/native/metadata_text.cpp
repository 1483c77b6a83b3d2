// Metadata as bytes: plain text, or text cut into packets.

#include <cstring>

#include "metadata.hpp"
#include "unreadable.hpp"

namespace ldos::ctf {

namespace {

constexpr std::uint32_t kPacketMagic = 0x75D11D57;
constexpr std::size_t kHeaderBytes = 37;
constexpr std::size_t kContentSizeAt = 24;
constexpr std::size_t kPacketSizeAt = 28;

std::uint32_t load_u32(const std::uint8_t* at, bool big) {
  const auto byte = [&](int i) { return static_cast<std::uint32_t>(at[big ? 3 - i : i]); };
  return byte(0) | byte(1) << 8U | byte(2) << 16U | byte(3) << 24U;
}

std::string unpacketize(std::span<const std::uint8_t> bytes, bool big, const std::string& file) {
  std::string text;
  std::size_t at = 0;
  while (at < bytes.size()) {
    if (bytes.size() - at < kHeaderBytes) throw Unreadable(file, at, "metadata packet header is cut");
    const std::uint8_t* packet = bytes.data() + at;
    if (load_u32(packet, big) != kPacketMagic) throw Unreadable(file, at, "not a metadata packet");
    const std::size_t content = load_u32(packet + kContentSizeAt, big) / 8;
    const std::size_t size = load_u32(packet + kPacketSizeAt, big) / 8;
    if (content < kHeaderBytes || content > size || size > bytes.size() - at) {
      throw Unreadable(file, at, "metadata packet with impossible sizes");
    }
    text.append(reinterpret_cast<const char*>(packet) + kHeaderBytes, content - kHeaderBytes);
    at += size;
  }
  return text;
}

}  // namespace

std::string metadata_text(std::span<const std::uint8_t> bytes, const std::string& file) {
  if (bytes.empty()) throw Unreadable(file, 0, "metadata is empty (was the trace copied while it was recorded?)");
  if (bytes.size() >= 4) {
    if (load_u32(bytes.data(), false) == kPacketMagic) return unpacketize(bytes, false, file);
    if (load_u32(bytes.data(), true) == kPacketMagic) return unpacketize(bytes, true, file);
  }
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.front() == 0x1E || text.front() == '{' || text.front() == '[') {
    throw Unreadable(file, 0, "metadata is CTF 2 (JSON); this version reads CTF 1.8");
  }
  if (!text.starts_with("/* CTF 1.8 */")) {
    throw Unreadable(file, 0, "not CTF 1.8 metadata (it begins neither with a packet nor with '/* CTF 1.8 */')");
  }
  return text;
}

}  // namespace ldos::ctf
