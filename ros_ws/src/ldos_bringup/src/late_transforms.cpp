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


/// Delays the callback of joint states if preloaded into robot_state_publisher, as an injected fault: before the
/// transforms are sent, that thread sleeps for LDOS_CALLBACK_DELAY_MS.

#include <dlfcn.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <geometry_msgs/msg/transform_stamped.hpp>
#include <tf2_ros/transform_broadcaster.hpp>

namespace
{

using Transforms = std::vector<geometry_msgs::msg::TransformStamped>;
using Send = void (*)(tf2_ros::TransformBroadcaster *, const Transforms &);

/// TransformBroadcaster::sendTransform(const Transforms &), as the compiler names it.
constexpr auto SEND_TRANSFORM =
  "_ZN7tf2_ros20TransformBroadcaster13sendTransformERK"
  "St6vectorIN13geometry_msgs3msg17TransformStamped_ISaIvEEESaIS6_EE";

Send tf2s_own()
{
  auto * const found = dlsym(RTLD_NEXT, SEND_TRANSFORM);
  if (found == nullptr) {
    throw std::runtime_error("late_transforms: tf2_ros has no such sendTransform to delay");
  }
  return reinterpret_cast<Send>(found);
}

std::chrono::duration<double, std::milli> delay()
{
  const auto * const text = std::getenv("LDOS_CALLBACK_DELAY_MS");
  return std::chrono::duration<double, std::milli>(text == nullptr ? 0.0 : std::stod(text));
}

}  // namespace

void tf2_ros::TransformBroadcaster::sendTransform(const Transforms & transforms)
{
  static const auto send = tf2s_own();
  static const auto late = delay();
  std::this_thread::sleep_for(late);
  send(this, transforms);
}
