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

#include "ldos_guard/stamp.hpp"

#include <span>

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include <rclcpp/typesupport_helpers.hpp>
#include <rosidl_typesupport_introspection_cpp/field_types.hpp>
#include <rosidl_typesupport_introspection_cpp/identifier.hpp>
#include <rosidl_typesupport_introspection_cpp/message_introspection.hpp>

namespace ldos_guard
{
namespace
{

using rosidl_typesupport_introspection_cpp::MessageMember;
using rosidl_typesupport_introspection_cpp::MessageMembers;
using Bytes = std::span<const std::uint8_t>;

constexpr std::int64_t ns_per_s = 1'000'000'000;
/// Header of a serialized message: two bytes for the encoding, two of options.
constexpr std::size_t encapsulation_length = 4;

const MessageMembers & members_of(const rosidl_message_type_support_t & type)
{
  return *static_cast<const MessageMembers *>(type.data);
}

/// The members of a message's first member; nothing if that is no message.
const MessageMembers * first_message(const MessageMembers & message)
{
  const auto & first = message.members_[0];
  return first.type_id_ == rosidl_typesupport_introspection_cpp::ROS_TYPE_MESSAGE ?
         &members_of(*first.members_) : nullptr;
}

bool is_header(const MessageMembers & message)
{
  return message.message_namespace_ == std::string_view("std_msgs::msg") &&
         message.message_name_ == std::string_view("Header");
}

bool begins_with_header(const MessageMembers & message)
{
  const auto * first = first_message(message);
  return first != nullptr && is_header(*first) && !message.members_[0].is_array_;
}

bool begins_with_sequence_of_such(const MessageMembers & message)
{
  const auto & member = message.members_[0];
  const bool is_sequence =
    member.is_array_ && (member.array_size_ == 0 || member.is_upper_bound_);
  const auto * first = first_message(message);
  return is_sequence && first != nullptr && begins_with_header(*first);
}

std::optional<StampPlace> stamp_in(const MessageMembers & message)
{
  if (begins_with_header(message)) {
    return StampPlace::header;
  }
  if (begins_with_sequence_of_such(message)) {
    return StampPlace::first_of_sequence;
  }
  return std::nullopt;
}

std::optional<StampPlace> stamp_of_type(const std::string & type)
{
  const std::string introspection =
    rosidl_typesupport_introspection_cpp::typesupport_identifier;
  try {
    const auto library = rclcpp::get_typesupport_library(type, introspection);
    return stamp_in(
      members_of(*rclcpp::get_message_typesupport_handle(type, introspection, *library)));
  } catch (const std::exception & error) {
    throw std::invalid_argument(
            "parameter 'type': messages of " + type + " are not known (" + error.what() +
            "); write PACKAGE/msg/NAME, and source the workspace that has the package");
  }
}

/// Plain CDR of either version; other encodings do not keep the declared layout.
bool is_plain(Bytes bytes)
{
  if (bytes.size() < encapsulation_length || bytes[0] != 0) {
    return false;
  }
  return bytes[1] <= 1 || bytes[1] == 6 || bytes[1] == 7;
}

/// Reads 32 bits, in the message's order of bytes.
std::optional<std::uint32_t> read_word(Bytes bytes, std::size_t place)
{
  if (bytes.size() < place + 4) {
    return std::nullopt;
  }
  const bool is_little_endian = (bytes[1] & 1U) != 0;
  std::uint32_t word = 0;
  for (std::size_t index = 0; index < 4; ++index) {
    word = (word << 8U) | bytes[place + (is_little_endian ? 3 - index : index)];
  }
  return word;
}

std::optional<std::int64_t> read_time(Bytes bytes, std::size_t place)
{
  const auto seconds = read_word(bytes, place);
  const auto nanoseconds = read_word(bytes, place + 4);
  if (!seconds || !nanoseconds || (*seconds == 0 && *nanoseconds == 0)) {
    return std::nullopt;
  }
  return static_cast<std::int32_t>(*seconds) * ns_per_s + *nanoseconds;
}

}  // namespace

StampPlace find_stamp(const std::string & type)
{
  const auto found = stamp_of_type(type);
  if (!found) {
    throw std::invalid_argument(
            "parameter 'type': messages of " + type + " do not begin with a std_msgs/Header, so "
            "their lateness is unknown; watch a topic whose messages do, "
            "or one of tf2_msgs/msg/TFMessage");
  }
  return *found;
}

std::optional<std::int64_t> read_stamp(StampPlace place, Bytes bytes)
{
  if (!is_plain(bytes)) {
    return std::nullopt;
  }
  if (place == StampPlace::header) {
    return read_time(bytes, encapsulation_length);
  }
  const auto length = read_word(bytes, encapsulation_length);
  return length.value_or(0) > 0 ? read_time(bytes, encapsulation_length + 4) : std::nullopt;
}

}  // namespace ldos_guard
