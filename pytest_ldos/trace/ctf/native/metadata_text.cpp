// Metadata as bytes: plain text, or text in packets.

#include <algorithm>
#include <cstring>

#include "metadata.hpp"
#include "unreadable.hpp"

namespace ldos::ctf {

namespace {

constexpr std::uint32_t kPacketMagic = 0x75D11D57;
constexpr std::size_t kHeaderBytes = 37;
constexpr std::size_t kUuidAt = 4;
constexpr std::size_t kContentSizeAt = 24;
constexpr std::size_t kPacketSizeAt = 28;
constexpr std::size_t kSchemesAt = 32;  // compression, encryption, checksum
constexpr std::size_t kVersionAt = 35;
constexpr const char* kRecording = " (is the session still recording, or was the trace copied while it was recorded?)";

std::uint32_t load_u32(const std::uint8_t* at, bool big) {
  const auto byte = [&](int i) { return static_cast<std::uint32_t>(at[big ? 3 - i : i]); };
  return byte(0) | byte(1) << 8U | byte(2) << 16U | byte(3) << 24U;
}

class Unpacker {
 public:
  Unpacker(std::span<const std::uint8_t> bytes, bool big, const std::string& file)
      : bytes_(bytes), big_(big), file_(file) {}

  std::string run() {
    for (std::size_t at = 0; at < bytes_.size();) at += take_packet(at);
    return std::move(text_);
  }

 private:
  [[noreturn]] void fail(std::size_t at, const std::string& reason) const { throw Unreadable(file_, at, reason); }

  // Adds a packet's text and returns the bytes it takes.
  std::size_t take_packet(std::size_t at) {
    if (bytes_.size() - at < kHeaderBytes) fail(at, std::string("metadata ends inside a packet's header") + kRecording);
    const std::uint8_t* packet = bytes_.data() + at;
    if (load_u32(packet, big_) != kPacketMagic) fail(at, "not a metadata packet (wrong magic number)");
    if (std::memcmp(packet + kUuidAt, bytes_.data() + kUuidAt, 16) != 0) fail(at, "metadata packet of another trace");
    if (std::any_of(packet + kSchemesAt, packet + kVersionAt, [](std::uint8_t scheme) { return scheme != 0; })) {
      fail(at, "metadata packets that are compressed, encrypted or have a checksum are not read");
    }
    check_version(at, packet[kVersionAt], packet[kVersionAt + 1]);
    const std::size_t content = load_u32(packet + kContentSizeAt, big_) / 8;
    const std::size_t size = load_u32(packet + kPacketSizeAt, big_) / 8;
    if (content < kHeaderBytes || content > size) fail(at, "metadata packet with impossible sizes");
    if (content > bytes_.size() - at) fail(at, std::string("metadata ends inside a packet") + kRecording);
    text_.append(reinterpret_cast<const char*>(packet) + kHeaderBytes, content - kHeaderBytes);
    return std::min(size, bytes_.size() - at);
  }

  void check_version(std::size_t at, std::uint8_t major, std::uint8_t minor) const {
    if ((major == 1 && minor == 8) || (major == 2 && minor == 0)) return;
    fail(at, "metadata packet of version " + std::to_string(major) + "." + std::to_string(minor) +
                 " (CTF 1.8 and 2.0 are read)");
  }

  std::span<const std::uint8_t> bytes_;
  bool big_;
  const std::string& file_;
  std::string text_;
};

// Plain text has its version in a comment; packets have it in their headers, and tracers omit the comment.
std::string plain(std::span<const std::uint8_t> bytes, const std::string& file) {
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (is_json(text) || text.starts_with("/* CTF 1.8")) return text;
  const auto is_control = [](char c) { return c >= 0 && c < ' ' && c != '\t' && c != '\n' && c != '\r'; };
  if (std::any_of(text.begin(), text.end(), is_control)) {
    throw Unreadable(file, 0, "not CTF metadata: neither text nor a packet of it (wrong magic number)");
  }
  throw Unreadable(file, 0, "not CTF metadata: text that begins neither with '/* CTF 1.8 */' nor as CTF 2 does");
}

}  // namespace

bool is_json(std::string_view text) { return text.starts_with('\x1E') || text.starts_with('{'); }

std::string metadata_text(std::span<const std::uint8_t> bytes, const std::string& file) {
  if (bytes.empty()) throw Unreadable(file, 0, std::string("metadata is empty") + kRecording);
  if (bytes.size() >= 4) {
    if (load_u32(bytes.data(), false) == kPacketMagic) return Unpacker(bytes, false, file).run();
    if (load_u32(bytes.data(), true) == kPacketMagic) return Unpacker(bytes, true, file).run();
  }
  return plain(bytes, file);
}

}  // namespace ldos::ctf
