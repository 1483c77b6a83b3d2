// Distinct strings of a text column, by number.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace ldos::ctf {

// Rows hold codes, each distinct string is stored once. Codes are given in the order of first
// appearance. The views point into the mapped trace.
class Dictionary {
 public:
  std::uint32_t code(std::string_view text);

  // The string in a field of `size` bytes, which ends at its first NUL.
  std::uint32_t code_of_field(const char* at, std::size_t size);

  [[nodiscard]] const std::vector<std::string_view>& entries() const { return entries_; }

 private:
  void grow();

  std::vector<std::string_view> entries_;
  std::vector<std::uint32_t> slots_;  // code + 1 by hash; 0 is free
};

// Finds codes of fields by their raw bytes: names of threads repeat often, and comparing
// all bytes of a field with the last similar one is cheaper than finding the end of its text.
class FieldCache {
 public:
  static constexpr bool suits(std::size_t size) { return size >= 8 && size <= 32; }

  // To be called before `count` fields; true if there is a cache for them. Thousands of tables may have
  // a row or two: these need none.
  bool prepare(std::size_t count) {
    if (count >= kWorthwhile) entries_.resize(kEntries);
    return !entries_.empty();
  }

  std::uint32_t code(Dictionary& dictionary, const char* at, std::size_t size) {
    const Words words(at, size);
    Entry& entry = entries_[words.hash()];
    if (entry.at == nullptr || !(words == Words(entry.at, size))) {
      entry.code = dictionary.code_of_field(at, size);
      entry.at = at;
    }
    return entry.code;
  }

 private:
  // All bytes of a field as words, some of them twice.
  struct Words {
    std::uint64_t a, b, c, d;

    Words(const char* at, std::size_t size)
        : a(word(at)),
          b(size > 16 ? word(at + 8) : a),
          c(size > 16 ? word(at + size - 16) : a),
          d(word(at + size - 8)) {}

    static std::uint64_t word(const char* at) {
      std::uint64_t value;
      std::memcpy(&value, at, sizeof value);
      return value;
    }

    bool operator==(const Words& other) const {
      return ((a ^ other.a) | (b ^ other.b) | (c ^ other.c) | (d ^ other.d)) == 0;
    }

    // Eight bits: one of `kEntries`.
    [[nodiscard]] std::size_t hash() const { return ((a ^ b * 0xff51afd7ed558ccdULL) * 0x9e3779b97f4a7c15ULL) >> 56; }
  };

  struct Entry {
    const char* at = nullptr;
    std::uint32_t code = 0;
  };

  static constexpr std::size_t kEntries = 256;
  static constexpr std::size_t kWorthwhile = 16;

  std::vector<Entry> entries_;
};

}  // namespace ldos::ctf
