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

#ifndef LDOS_GUARD__STAMP_HPP_
#define LDOS_GUARD__STAMP_HPP_

#include <span>

#include <cstdint>
#include <optional>
#include <string>

namespace ldos_guard
{

/// Position of the time at which a message's path began.
enum class StampPlace
{
  /// It begins with a std_msgs/Header.
  header,
  /// It begins with a list of messages with a header, like tf2_msgs/TFMessage; the first counts.
  first_of_sequence,
};

/// Determines it from the type's description.
/// @param type such as `sensor_msgs/msg/JointState`.
/// @throws std::invalid_argument the type is not known, or has no time.
StampPlace find_stamp(const std::string & type);

/// The time in a serialized message, in nanoseconds since 1970 (or of the simulation).
///
/// @param bytes in CDR.
/// @returns nothing if the time is 0, the sequence is empty or the message is of another type.
std::optional<std::int64_t> read_stamp(StampPlace place, std::span<const std::uint8_t> bytes);

}  // namespace ldos_guard

#endif  // LDOS_GUARD__STAMP_HPP_
