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

#include "ldos_goal_client/goal.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

namespace ldos_goal_client
{
namespace
{

constexpr double shortest_quaternion = 1e-6;

template<std::size_t size>
bool are_finite(const std::array<double, size> & numbers)
{
  return std::ranges::all_of(numbers, [](double number) {return std::isfinite(number);});
}

double length_of(const std::array<double, 4> & quaternion)
{
  const auto & [x, y, z, w] = quaternion;
  return std::hypot(std::hypot(x, y), std::hypot(z, w));
}

}  // namespace

Pose make_pose(const std::array<double, 3> & position, const std::array<double, 4> & orientation)
{
  if (!are_finite(position) || !are_finite(orientation)) {
    throw InvalidGoal("a pose has a number that is not finite");
  }
  const double length = length_of(orientation);
  if (!std::isfinite(length) || length < shortest_quaternion) {
    throw InvalidGoal("an orientation is no rotation; give a quaternion x, y, z, w");
  }
  Pose pose{position, orientation};
  for (double & number : pose.orientation) {
    number /= length;
  }
  return pose;
}

void require_valid(const Joints & joints)
{
  if (joints.empty()) {
    throw InvalidGoal("joints are empty; name at least one joint");
  }
  for (const auto & [name, position] : joints) {
    if (!std::isfinite(position)) {
      throw InvalidGoal("the position of joint '" + name + "' is not finite");
    }
  }
}

}  // namespace ldos_goal_client
