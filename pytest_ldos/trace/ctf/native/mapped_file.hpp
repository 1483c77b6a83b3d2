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

  // Lets the kernel map these bytes together instead of one page at a time.
  void populate(std::uint64_t offset, std::uint64_t bytes) const;

  // Gives the memory of pages that were read back to the kernel; they can still be read.
  void release() const;

 private:
  std::string path_;
  std::span<const std::uint8_t> bytes_;
};

}  // namespace ldos::ctf
