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

#ifndef LDOS_LOAD__PAYLOAD_HPP_
#define LDOS_LOAD__PAYLOAD_HPP_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace ldos_load
{

/// Characters of a message's text that hold its sequence number, in hex.
inline constexpr std::size_t sequence_length = 16;

/// A text of this many bytes with sequence number 0.
/// @throws std::invalid_argument it is too short for a sequence number.
std::string make_payload(std::size_t size_bytes);

/// Writes the sequence number at the beginning of a text of `make_payload`.
void write_sequence(std::string & payload, std::uint64_t sequence);

/// None if the text does not begin with a sequence number.
std::optional<std::uint64_t> read_sequence(const std::string & payload);

}  // namespace ldos_load

#endif  // LDOS_LOAD__PAYLOAD_HPP_
