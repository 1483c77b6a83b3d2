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

#include "ldos_goal_client/pose_error.hpp"

#include <cmath>

namespace ldos_goal_client
{

PoseError error_between(const Pose & one, const Pose & other)
{
  const auto & [ax, ay, az, aw] = one.orientation;
  const auto & [bx, by, bz, bw] = other.orientation;
  // The rotation from one to the other; the arctangent is exact where angles are small.
  const double x = aw * bx - ax * bw - ay * bz + az * by;
  const double y = aw * by - ay * bw - az * bx + ax * bz;
  const double z = aw * bz - az * bw - ax * by + ay * bx;
  const double w = aw * bw + ax * bx + ay * by + az * bz;
  const auto & p = one.position;
  const auto & q = other.position;
  return PoseError{
    std::hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]),
    2.0 * std::atan2(std::hypot(x, y, z), std::abs(w))};
}

}  // namespace ldos_goal_client
