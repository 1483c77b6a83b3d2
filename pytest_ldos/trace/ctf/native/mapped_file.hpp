// A file mapped read-only for as long as the object lives.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace ldos::ctf {

class MappedFile {
 public:
  explicit MappedFile(const std::string& path);  // throws Unreadable
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;

  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return bytes_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::span<const std::uint8_t> bytes_;
};

}  // namespace ldos::ctf
