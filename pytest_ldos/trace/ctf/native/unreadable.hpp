// Exceptions for bytes that are no readable trace.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace ldos::ctf {

struct Unreadable : std::runtime_error {
  Unreadable(std::string file_, std::optional<std::uint64_t> offset_, const std::string& reason_)
      : std::runtime_error(reason_), file(std::move(file_)), offset(offset_) {}

  std::string file;
  std::optional<std::uint64_t> offset;
};

// Two passes over a file found different things in it.
inline Unreadable changed(const std::string& file) { return {file, std::nullopt, "was changed while it was read"}; }

}  // namespace ldos::ctf
