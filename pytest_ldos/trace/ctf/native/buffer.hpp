// Memory for one column.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ldos::ctf {

// Zeroed memory of a fixed size. A page of it costs nothing until it is written; if it is
// large, it consists of huge pages, because the faults of small ones take as long as the decoding.
class Buffer {
 public:
  Buffer() = default;
  // `count` elements of `size` bytes. Throws std::bad_alloc.
  Buffer(std::size_t count, std::size_t size);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  [[nodiscard]] std::uint8_t* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] bool empty() const { return bytes_ == 0; }

  template <typename T>
  [[nodiscard]] T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  void map();

  std::uint8_t* data_ = nullptr;
  std::size_t bytes_ = 0;
  void* mapping_ = nullptr;  // null if the memory is the allocator's
  std::size_t mapped_ = 0;
};

}  // namespace ldos::ctf
