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

#ifndef LDOS_GOAL_CLIENT__GOAL_HPP_
#define LDOS_GOAL_CLIENT__GOAL_HPP_

#include <array>
#include <map>
#include <stdexcept>
#include <string>
#include <variant>

namespace ldos_goal_client
{

/// Positions in radians (or metres), by joint name.
using Joints = std::map<std::string, double>;

/// A position in metres and a rotation as unit quaternion x, y, z, w.
struct Pose
{
  std::array<double, 3> position{};
  std::array<double, 4> orientation{0.0, 0.0, 0.0, 1.0};
};

/// A motion request: the pose of a link in the arm's base frame, or positions of joints.
struct Goal
{
  std::string name;
  std::string link;
  std::variant<Pose, Joints> target;
};

/// The link that is to reach a pose if a goal names none.
inline constexpr const char * default_link = "panda_link8";

/// Numbers that are no pose, joints or goal.
class InvalidGoal : public std::runtime_error
{
public:
  using std::runtime_error::runtime_error;
};

/// A pose with its quaternion scaled to length 1, as MoveIt wants it.
/// @throws InvalidGoal a number is not finite, or the quaternion is zero.
Pose make_pose(const std::array<double, 3> & position, const std::array<double, 4> & orientation);

/// @throws InvalidGoal there are none, or one is not finite.
void require_valid(const Joints & joints);

}  // namespace ldos_goal_client

#endif  // LDOS_GOAL_CLIENT__GOAL_HPP_
