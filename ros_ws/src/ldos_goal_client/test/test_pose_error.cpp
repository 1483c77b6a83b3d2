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

#include <cmath>

#include "ldos_goal_client/pose_error.hpp"

using ldos_goal_client::PoseError;
using ldos_goal_client::error_between;
using ldos_goal_client::make_pose;

TEST(PoseError, IsZeroBetweenEqualPoses)
{
  const auto pose = make_pose({0.4, 0.2, 0.5}, {0.707, 0.707, 0.0, 0.0});
  const auto error = error_between(pose, pose);
  EXPECT_EQ(error.position_m, 0.0);
  EXPECT_NEAR(error.rotation_rad, 0.0, 1e-15);
}

TEST(PoseError, IsDistanceAndAngle)
{
  const auto one = make_pose({1.0, 2.0, 3.0}, {0.0, 0.0, 0.0, 1.0});
  const auto other = make_pose({1.0, 5.0, 7.0}, {0.0, 0.0, std::sin(0.2), std::cos(0.2)});
  const auto error = error_between(one, other);
  EXPECT_DOUBLE_EQ(error.position_m, 5.0);
  EXPECT_NEAR(error.rotation_rad, 0.4, 1e-12);
}

TEST(PoseError, SmallAnglesAreExact)
{
  const auto one = make_pose({}, {0.0, 0.0, 0.0, 1.0});
  const auto other = make_pose({}, {std::sin(5e-10), 0.0, 0.0, std::cos(5e-10)});
  EXPECT_NEAR(error_between(one, other).rotation_rad, 1e-9, 1e-15);
}

TEST(PoseError, AQuaternionAndItsNegativeAreOneRotation)
{
  const auto one = make_pose({}, {0.1, 0.2, 0.3, 0.4});
  const auto other = make_pose({}, {-0.1, -0.2, -0.3, -0.4});
  EXPECT_NEAR(error_between(one, other).rotation_rad, 0.0, 1e-15);
}
