// Loads of integers of any size, position and byte order.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "field_class.hpp"

namespace ldos::ctf {

template <typename T>
T load_native(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <typename T>
constexpr T swap_bytes(T value) {
  if constexpr (sizeof(T) == 1) return value;
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
  if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
  if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
}

template <typename T>
T load_bytes(const std::uint8_t* at, ByteOrder order) {
  const T value = load_native<T>(at);
  constexpr ByteOrder kHost = std::endian::native == std::endian::little ? ByteOrder::little : ByteOrder::big;
  return order == kHost ? value : swap_bytes(value);
}

// `size` bits from bit `bit` of `base`. In little-endian fields the first bit is a byte's
// least significant one, in big-endian fields its most significant one (CTF 1.8, 4.1.5).
inline std::uint64_t load_packed(const std::uint8_t* base, std::uint64_t bit, std::uint32_t size, ByteOrder order) {
  std::uint64_t value = 0;
  if (order == ByteOrder::little) {
    for (std::uint32_t done = 0; done < size;) {
      const std::uint64_t at = bit + done;
      const std::uint32_t shift = at % 8;
      const std::uint32_t taken = size - done < 8 - shift ? size - done : 8 - shift;
      const std::uint64_t part = (base[at / 8] >> shift) & ((1U << taken) - 1U);
      value |= part << done;
      done += taken;
    }
    return value;
  }
  for (std::uint32_t done = 0; done < size;) {
    const std::uint64_t at = bit + done;
    const std::uint32_t shift = at % 8;
    const std::uint32_t taken = size - done < 8 - shift ? size - done : 8 - shift;
    const std::uint64_t part = (static_cast<std::uint32_t>(base[at / 8]) >> (8 - shift - taken)) & ((1U << taken) - 1U);
    value = (value << taken) | part;
    done += taken;
  }
  return value;
}

inline std::uint64_t load_bits(const std::uint8_t* base, std::uint64_t bit, std::uint32_t size, ByteOrder order) {
  if (bit % 8 == 0) {
    const std::uint8_t* at = base + bit / 8;
    switch (size) {
      case 8: return *at;
      case 16: return load_bytes<std::uint16_t>(at, order);
      case 32: return load_bytes<std::uint32_t>(at, order);
      case 64: return load_bytes<std::uint64_t>(at, order);
      default: break;
    }
  }
  return load_packed(base, bit, size, order);
}

// The low `size` bits of a value as a signed number of 64 bits.
inline std::uint64_t sign_extend(std::uint64_t value, std::uint32_t size) {
  if (size == 64) return value;
  const std::uint64_t sign = 1ULL << (size - 1);
  return ((value & (2 * sign - 1)) ^ sign) - sign;
}

}  // namespace ldos::ctf
