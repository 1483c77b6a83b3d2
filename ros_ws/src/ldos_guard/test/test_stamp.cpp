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

#include <gtest/gtest.h>

#include <span>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <rclcpp/serialization.hpp>
#include <rclcpp/serialized_message.hpp>
#include <sensor_msgs/msg/joint_state.hpp>
#include <tf2_msgs/msg/tf_message.hpp>

#include "ldos_guard/stamp.hpp"

using ldos_guard::find_stamp;
using ldos_guard::read_stamp;
using ldos_guard::StampPlace;
using Bytes = std::vector<std::uint8_t>;

template<typename MessageT>
Bytes serialized(const MessageT & message)
{
  rclcpp::SerializedMessage memory;
  rclcpp::Serialization<MessageT>().serialize_message(&message, &memory);
  const auto & found = memory.get_rcl_serialized_message();
  return {found.buffer, found.buffer + found.buffer_length};
}

TEST(Stamp, IsFoundInTheTypesDescription)
{
  EXPECT_EQ(find_stamp("sensor_msgs/msg/JointState"), StampPlace::header);
  EXPECT_EQ(find_stamp("tf2_msgs/msg/TFMessage"), StampPlace::first_of_sequence);
}

void expect_refusal(const std::string & type, const std::string & words)
{
  try {
    find_stamp(type);
    ADD_FAILURE() << type << " was not refused";
  } catch (const std::invalid_argument & error) {
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

TEST(Stamp, TypesWithoutOneAreRefused)
{
  for (const auto * type :
    {"std_msgs/msg/String", "std_msgs/msg/Empty", "std_msgs/msg/Header",
      "std_msgs/msg/UInt8MultiArray",
      "geometry_msgs/msg/Pose", "geometry_msgs/msg/PoseWithCovariance"})
  {
    expect_refusal(type, "do not begin with a std_msgs/Header");
  }
}

TEST(Stamp, UnknownTypesAreRefused)
{
  for (const auto * type :
    {"no_such_msgs/msg/Nothing", "sensor_msgs/msg/Nothing", "JointState", "a/b/c/d", ""})
  {
    expect_refusal(type, "write PACKAGE/msg/NAME");
  }
}

TEST(Stamp, IsReadFromAHeader)
{
  sensor_msgs::msg::JointState message;
  message.header.frame_id = "base";
  message.name = {"a", "b"};
  message.header.stamp.sec = 1'700'000'000;
  message.header.stamp.nanosec = 123'456'789;
  EXPECT_EQ(read_stamp(StampPlace::header, serialized(message)), 1'700'000'000'123'456'789);
}

TEST(Stamp, IsThatOfTheFirstTransform)
{
  tf2_msgs::msg::TFMessage message;
  EXPECT_EQ(read_stamp(StampPlace::first_of_sequence, serialized(message)), std::nullopt);
  message.transforms.resize(2);
  message.transforms[0].header.stamp.sec = 5;
  message.transforms[1].header.stamp.sec = 6;
  EXPECT_EQ(read_stamp(StampPlace::first_of_sequence, serialized(message)), 5'000'000'000);
}

TEST(Stamp, ZeroIsNoStamp)
{
  EXPECT_EQ(
    read_stamp(StampPlace::header, serialized(sensor_msgs::msg::JointState())), std::nullopt);
}

TEST(Stamp, BothByteOrdersAreRead)
{
  EXPECT_EQ(read_stamp(StampPlace::header, Bytes{0, 1, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0}),
    2'000'000'003);
  EXPECT_EQ(read_stamp(StampPlace::header, Bytes{0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 3}),
    2'000'000'003);
  EXPECT_EQ(
    read_stamp(StampPlace::header, Bytes{0, 7, 0, 0, 0xff, 0xff, 0xff, 0xff, 3, 0, 0, 0}),
    -999'999'997);
}

TEST(Stamp, AnotherEncodingHasNone)
{
  for (const std::uint8_t encoding : {2, 3, 8, 9, 11}) {
    EXPECT_EQ(
      read_stamp(StampPlace::header, Bytes{0, encoding, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0}),
      std::nullopt);
  }
}

TEST(Stamp, TruncatedMessagesHaveNone)
{
  const Bytes whole{0, 1, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0};
  for (const auto place : {StampPlace::header, StampPlace::first_of_sequence}) {
    const std::size_t needed = place == StampPlace::header ? 12 : 16;
    for (std::size_t length = 0; length <= whole.size(); ++length) {
      const std::span bytes(whole.data(), length);
      EXPECT_EQ(read_stamp(place, bytes).has_value(), length >= needed) << length;
    }
  }
}
