// Copyright (c) 2026 The pytest-ldos authors
//
// Permission is hereby granted, free of charge, to any person obtaining a copy
// of this software and associated documentation files (the "Software"), to deal
// in the Software without restriction, including without limitation the rights
// to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
// copies of the Software, and to permit persons to whom the Software is
// furnished to do so, subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in
// all copies or substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
// IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
// FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL
// THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
// LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
// OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN
// THE SOFTWARE.

#include "ldos_load/payload.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>

namespace ldos_load
{

std::string make_payload(std::size_t size_bytes)
{
  if (size_bytes < sequence_length) {
    throw std::invalid_argument("a message needs 16 bytes for its sequence number");
  }
  std::string payload(size_bytes, 'X');
  write_sequence(payload, 0);
  return payload;
}

void write_sequence(std::string & payload, std::uint64_t sequence)
{
  constexpr char digits[] = "0123456789abcdef";
  for (std::size_t at = sequence_length; at > 0; --at) {
    payload[at - 1] = digits[sequence & 0xf];
    sequence >>= 4;
  }
}

std::optional<std::uint64_t> read_sequence(const std::string & payload)
{
  if (payload.size() < sequence_length) {
    return std::nullopt;
  }
  std::uint64_t sequence{};
  const char * const end = payload.data() + sequence_length;
  const auto [stopped, error] = std::from_chars(payload.data(), end, sequence, 16);
  if (error != std::errc{} || stopped != end) {
    return std::nullopt;
  }
  return sequence;
}

}  // namespace ldos_load
