#include "buffer.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <limits>
#include <new>
#include <utility>

namespace ldos::ctf {

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

}  // namespace

Buffer::Buffer(std::size_t count, std::size_t size) : bytes_(count * size) {
  if (size != 0 && count > (std::numeric_limits<std::size_t>::max() - kHugePage) / size) throw std::bad_alloc();
  if (bytes_ >= kHugePage) {
    map();
    return;
  }
  data_ = static_cast<std::uint8_t*>(std::calloc(bytes_ == 0 ? 1 : bytes_, 1));
  if (data_ == nullptr) throw std::bad_alloc();
}

// Only whole huge pages are requested: the last, partial one would waste memory.
void Buffer::map() {
  mapped_ = bytes_ + kHugePage;
  mapping_ = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping_ == MAP_FAILED) throw std::bad_alloc();
  const auto address = reinterpret_cast<std::uintptr_t>(mapping_);
  data_ = reinterpret_cast<std::uint8_t*>((address + kHugePage - 1) & ~(kHugePage - 1));
  // Without huge pages in the kernel the call fails, and small ones are used.
  (void)::madvise(data_, bytes_ & ~(kHugePage - 1), MADV_HUGEPAGE);
}

Buffer::~Buffer() {
  if (mapping_ != nullptr) {
    ::munmap(mapping_, mapped_);
  } else {
    std::free(data_);
  }
}

Buffer::Buffer(Buffer&& other) noexcept { *this = std::move(other); }

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

}  // namespace ldos::ctf
