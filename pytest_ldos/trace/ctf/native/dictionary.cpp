#include "dictionary.hpp"

#include <functional>

namespace ldos::ctf {

std::uint32_t Dictionary::code(std::string_view text) {
  if (2 * entries_.size() >= slots_.size()) grow();
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = std::hash<std::string_view>{}(text) & mask;
  for (; slots_[slot] != 0; slot = (slot + 1) & mask) {
    if (entries_[slots_[slot] - 1] == text) return slots_[slot] - 1;
  }
  entries_.push_back(text);
  slots_[slot] = static_cast<std::uint32_t>(entries_.size());
  return slots_[slot] - 1;
}

std::uint32_t Dictionary::code_of_field(const char* at, std::size_t size) { return code({at, ::strnlen(at, size)}); }

void Dictionary::grow() {
  slots_.assign(slots_.empty() ? 16 : 2 * slots_.size(), 0);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    std::size_t slot = std::hash<std::string_view>{}(entries_[i]) & mask;
    while (slots_[slot] != 0) slot = (slot + 1) & mask;
    slots_[slot] = static_cast<std::uint32_t>(i + 1);
  }
}

}  // namespace ldos::ctf
