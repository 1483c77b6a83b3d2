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

#include <optional>

#include "ldos_planner/seed.hpp"

using ldos_planner::Seed;
using ldos_planner::seed_in;
using ldos_planner::seed_of;

namespace
{

moveit_msgs::msg::MotionPlanRequest seeded_request()
{
  moveit_msgs::msg::MotionPlanRequest request;
  request.goal_constraints.resize(1);
  request.goal_constraints[0].name = "reach#ldos_seed=7";
  return request;
}

}  // namespace

TEST(SeedInName, IsTheNumberAtItsEnd)
{
  EXPECT_EQ(seed_in("reach#ldos_seed=7"), std::optional<Seed>(7));
  EXPECT_EQ(seed_in("#ldos_seed=2147483647"), std::optional<Seed>(2147483647));
  EXPECT_EQ(seed_in("a#ldos_seed=1#ldos_seed=2"), std::optional<Seed>(2));
}

TEST(SeedInName, IsNoneInOtherNames)
{
  for (const auto * name : {
      "", "reach", "reach#ldos_seed=", "reach#ldos_seed=0", "reach#ldos_seed=-1",
      "reach#ldos_seed=2147483648", "reach#ldos_seed=7 ", "reach#ldos_seed=seven"})
  {
    EXPECT_FALSE(seed_in(name)) << name;
  }
}

TEST(SeedOfRequest, IsTheSeedOfItsGoal)
{
  EXPECT_EQ(seed_of(seeded_request()), std::optional<Seed>(7));
}

TEST(SeedOfRequest, IsNoneIfTheRequestCannotBeSeeded)
{
  EXPECT_FALSE(seed_of(moveit_msgs::msg::MotionPlanRequest()));
  auto several = seeded_request();
  several.goal_constraints.push_back(several.goal_constraints[0]);
  EXPECT_FALSE(seed_of(several));
  auto constrained = seeded_request();
  constrained.path_constraints.joint_constraints.resize(1);
  EXPECT_FALSE(seed_of(constrained));
}
