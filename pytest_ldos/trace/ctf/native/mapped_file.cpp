#include "mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "unreadable.hpp"

namespace ldos::ctf {

namespace {

struct Descriptor {
  explicit Descriptor(int value_) : value(value_) {}
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int value;
};

[[noreturn]] void fail(const std::string& path, const char* what) {
  throw Unreadable(path, std::nullopt, std::string(what) + ": " + std::strerror(errno));
}

}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
  // Opening a FIFO must not wait for its writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.value < 0) fail(path, "cannot open");
  struct stat status {};
  if (::fstat(file.value, &status) != 0) fail(path, "cannot read its size");
  if (!S_ISREG(status.st_mode)) throw Unreadable(path, std::nullopt, "is not a regular file");
  if (status.st_size == 0) return;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.value, 0);
  if (address == MAP_FAILED) fail(path, "cannot map");
  bytes_ = {static_cast<const std::uint8_t*>(address), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::uint8_t*>(bytes_.data()), bytes_.size());
}

void MappedFile::populate(std::uint64_t offset, std::uint64_t bytes) const {
#ifdef MADV_POPULATE_READ
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes_.data() + offset);
  const std::uintptr_t first = begin & ~(page - 1);
  // Older kernels do not support it; pages are then mapped when they are read.
  (void)::madvise(reinterpret_cast<void*>(first), begin + bytes - first, MADV_POPULATE_READ);
#endif
}

void MappedFile::release() const {
  if (!bytes_.empty()) ::madvise(const_cast<std::uint8_t*>(bytes_.data()), bytes_.size(), MADV_DONTNEED);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

}  // namespace ldos::ctf
