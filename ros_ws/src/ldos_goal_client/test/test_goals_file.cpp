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
#include <string>
#include <variant>

#include "ldos_goal_client/goals_file.hpp"

using ldos_goal_client::GoalsFile;
using ldos_goal_client::Joints;
using ldos_goal_client::Pose;
using ldos_goal_client::UnreadableGoals;
using ldos_goal_client::find_goal_set;
using ldos_goal_client::parse_goals;
using ldos_goal_client::read_goals_file;

namespace
{

const char * const good =
  "home: {joints: {joint_a: 0.25, joint_b: -1}}\n"
  "goal_sets:\n"
  "  reach:\n"
  "    - name: far\n"
  "      link: tip\n"
  "      pose: {position: [0.4, 0.2, 0.5], orientation: [3.0, 4.0, 0.0, 0.0]}\n"
  "    - {name: bent, joints: {joint_a: 1.5}, pose: null}\n";

std::string reason_of(const std::string & text)
{
  try {
    parse_goals(text, "goals.yaml");
  } catch (const UnreadableGoals & unreadable) {
    return unreadable.what();
  }
  return "";
}

}  // namespace

TEST(GoalsFile, HasHomeAndSets)
{
  const auto goals = parse_goals(good, "goals.yaml");
  ASSERT_TRUE(goals.home);
  EXPECT_EQ(goals.home->name, "home");
  EXPECT_EQ(std::get<Joints>(goals.home->target), (Joints{{"joint_a", 0.25}, {"joint_b", -1.0}}));
  const auto & set = find_goal_set(goals, "reach");
  ASSERT_EQ(set.size(), 2U);
  EXPECT_EQ(set[0].name, "far");
  EXPECT_EQ(set[0].link, "tip");
  EXPECT_EQ(std::get<Joints>(set[1].target), (Joints{{"joint_a", 1.5}}));
}

TEST(GoalsFile, OrientationsAreMadeUnitQuaternions)
{
  const auto goals = parse_goals(good, "goals.yaml");
  const auto & pose = std::get<Pose>(goals.goal_sets.at("reach")[0].target);
  EXPECT_EQ(pose.position, (std::array<double, 3>{0.4, 0.2, 0.5}));
  EXPECT_DOUBLE_EQ(pose.orientation[0], 0.6);
  EXPECT_DOUBLE_EQ(pose.orientation[1], 0.8);
}

TEST(GoalsFile, HomeIsOptional)
{
  EXPECT_FALSE(parse_goals("goal_sets: {a: [{name: b, joints: {c: 0}}]}", "goals.yaml").home);
}

TEST(GoalsFile, UnknownSetNamesThoseThatExist)
{
  const auto goals = parse_goals(good, "goals.yaml");
  try {
    find_goal_set(goals, "raech");
    FAIL() << "found a set that does not exist";
  } catch (const UnreadableGoals & unreadable) {
    EXPECT_STREQ(unreadable.what(), "there is no goal set 'raech'; known: reach");
  }
}

TEST(GoalsFile, FileThatCannotBeReadIsNamed)
{
  try {
    read_goals_file("/nowhere/goals.yaml");
    FAIL() << "read a file that does not exist";
  } catch (const UnreadableGoals & unreadable) {
    EXPECT_NE(std::string(unreadable.what()).find("/nowhere/goals.yaml"), std::string::npos);
  }
}

TEST(GoalsFile, InvalidYamlIsRefusedWithItsLine)
{
  EXPECT_EQ(reason_of("home:\n  - {]").rfind("goals.yaml:2: ", 0), 0U);
}

struct BadFile
{
  const char * text;
  const char * reason;
};

class BadGoals : public testing::TestWithParam<BadFile> {};

TEST_P(BadGoals, AreRefusedWithLineAndKey)
{
  EXPECT_EQ(reason_of(GetParam().text), GetParam().reason);
}

INSTANTIATE_TEST_SUITE_P(
  Each, BadGoals, testing::Values(
    BadFile{"- 1", "goals.yaml:1: the file must be a mapping"},
    BadFile{"home: {joints: {a: 1}}", "goals.yaml:1: 'goal_sets' must map names to lists of goals"},
    BadFile{"goal_sets: {}\nhomes: {}", "goals.yaml:2: the file has an unknown key 'homes'"},
    BadFile{"goal_sets:\n  reach: []",
      "goals.yaml:2: goal_sets.reach must be a list of at least one goal"},
    BadFile{"goal_sets:\n  reach:\n    - {joints: {a: 1}}",
      "goals.yaml:3: goal_sets.reach[0].name is missing"},
    BadFile{"goal_sets:\n  reach:\n    - {name: b}",
      "goals.yaml:3: goal_sets.reach[0] must have either a pose or joints"},
    BadFile{"goal_sets:\n  reach:\n    - {name: b, speed: 1}",
      "goals.yaml:3: goal_sets.reach[0] has an unknown key 'speed'"},
    BadFile{"goal_sets:\n  reach:\n    - name: b\n      joints:\n        a: up",
      "goals.yaml:5: goal_sets.reach[0].joints.a must be a number"},
    BadFile{"goal_sets: {r: [{name: b, joints: {a: .nan}}]}",
      "goals.yaml:1: goal_sets.r[0].joints: the position of joint 'a' is not finite"},
    BadFile{"goal_sets: {r: [{name: b, pose: {position: [0, 0], orientation: [0, 0, 0, 1]}}]}",
      "goals.yaml:1: goal_sets.r[0].pose.position must be a list of 3 numbers"},
    BadFile{"goal_sets: {r: [{name: b, pose: {position: [0, 0, 0], orientation: [0, 0, 0, 0]}}]}",
      "goals.yaml:1: goal_sets.r[0].pose: an orientation is no rotation; "
      "give a quaternion x, y, z, w"},
    BadFile{"goal_sets: {r: [{name: b, pose: {position: [0, 0, 0]}}]}",
      "goals.yaml:1: goal_sets.r[0].pose.orientation is missing"}));
