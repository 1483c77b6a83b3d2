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

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <variant>

#include "commands.hpp"
#include "ldos_goal_client/move_command.hpp"

using ldos_goal_client::BadCommand;
using ldos_goal_client::Joints;
using ldos_goal_client::MoveCommand;
using ldos_goal_client::Pose;
using ldos_goal_client::default_link;
using ldos_goal_client::goal_id;
using ldos_goal_client::good_command;
using ldos_goal_client::parse_command;

using nlohmann::json;

TEST(MoveCommand, IsReadFromJson)
{
  const auto command = parse_command(good_command().dump());
  EXPECT_EQ(command.goal_id, goal_id);
  EXPECT_EQ(command.goal.name, "reach");
  EXPECT_EQ(command.goal.link, "tip");
  EXPECT_EQ(std::get<Pose>(command.goal.target).position, (std::array<double, 3>{0.4, 0.2, 0.5}));
  ASSERT_TRUE(command.trial);
  EXPECT_EQ(command.trial->scenario, "cpu_load");
  EXPECT_EQ(command.trial->index, 3U);
  EXPECT_EQ(command.seed, std::optional<std::uint32_t>(7));
  EXPECT_EQ(command.start, (Joints{{"joint_a", 0.5}}));
  EXPECT_EQ(command.planning_time_s, 5.0);
  EXPECT_EQ(command.velocity_scaling, 0.5);
  EXPECT_EQ(command.acceleration_scaling, 0.25);
  EXPECT_EQ(command.timeout_s, 30.0);
}

TEST(MoveCommand, NullsAreAbsentValues)
{
  auto object = good_command();
  object["trial"] = object["start"] = object["seed"] = nullptr;
  object["goal"]["pose"] = object["goal"]["link"] = nullptr;
  object["goal"]["joints"] = {{"a", 1}};
  const auto command = parse_command(object.dump());
  EXPECT_FALSE(command.trial);
  EXPECT_FALSE(command.seed);
  EXPECT_FALSE(command.start);
  EXPECT_EQ(command.goal.link, default_link);
  EXPECT_EQ(std::get<Joints>(command.goal.target), (Joints{{"a", 1.0}}));
}

TEST(MoveCommand, OnlyPlansOnRequest)
{
  auto object = good_command();
  EXPECT_FALSE(parse_command(object.dump()).plan_only);
  object["plan_only"] = true;
  EXPECT_TRUE(parse_command(object.dump()).plan_only);
}

TEST(MoveCommand, WithoutAnIdGetsNoReport)
{
  for (const char * line : {"", "reach!", "[]", "{}", R"({"goal_id": "0123"})",
      R"({"goal_id": "0123456789abcdef0123456789abcdeg"})"})
  {
    try {
      parse_command(line);
      FAIL() << line;
    } catch (const BadCommand & bad) {
      EXPECT_EQ(bad.goal_id(), std::nullopt) << line;
    }
  }
}

struct Spoilt
{
  const char * reason;
  std::function<void(json &)> spoil;
};

class SpoiltCommand : public testing::TestWithParam<Spoilt> {};

TEST_P(SpoiltCommand, IsRefusedWithItsIdAndAReason)
{
  auto object = good_command();
  GetParam().spoil(object);
  try {
    parse_command(object.dump());
    FAIL() << "taken for a command";
  } catch (const BadCommand & bad) {
    EXPECT_EQ(bad.goal_id(), goal_id);
    EXPECT_EQ(bad.what(), std::string(GetParam().reason));
  }
}

INSTANTIATE_TEST_SUITE_P(
  Each, SpoiltCommand, testing::Values(
    Spoilt{"the command has an unknown key 'sped'", [](json & o) {o["sped"] = 1;}},
    Spoilt{"'goal' must be an object", [](json & o) {o.erase("goal");}},
    Spoilt{"'name' must be a text", [](json & o) {o["goal"]["name"] = 1;}},
    Spoilt{"goal 'reach' must have either a pose or joints",
      [](json & o) {o["goal"]["joints"] = {{"a", 1}};}},
    Spoilt{"'position' must be a list of 3 numbers",
      [](json & o) {o["goal"]["pose"]["position"] = {1, 2};}},
    Spoilt{"'orientation' must be a list of 4 numbers",
      [](json & o) {o["goal"]["pose"]["orientation"] = {1, 2, 3, "x"};}},
    Spoilt{"an orientation is no rotation; give a quaternion x, y, z, w",
      [](json & o) {o["goal"]["pose"]["orientation"] = {0, 0, 0, 0};}},
    Spoilt{"'plan_only' must be true or false", [](json & o) {o["plan_only"] = 1;}},
    Spoilt{"'index' must be a whole number from 0 to 4294967295",
      [](json & o) {o["trial"]["index"] = -1;}},
    Spoilt{"'index' must be a whole number from 0 to 4294967295",
      [](json & o) {o["trial"]["index"] = 4294967296;}},
    Spoilt{"'seed' must be a whole number from 1 to 2147483647, or null",
      [](json & o) {o["seed"] = 0.5;}},
    Spoilt{"'seed' must be a whole number from 1 to 2147483647, or null",
      [](json & o) {o["seed"] = 0;}},
    Spoilt{"'seed' must be a whole number from 1 to 2147483647, or null",
      [](json & o) {o["seed"] = 2147483648;}},
    Spoilt{"'start' must map joint names to positions", [](json & o) {o["start"] = {1};}},
    Spoilt{"joints are empty; name at least one joint",
      [](json & o) {o["start"] = json::object();}},
    Spoilt{"'planning_time_s' must be a number", [](json & o) {o.erase("planning_time_s");}},
    Spoilt{"'velocity_scaling' must lie between 0 and 1.000000",
      [](json & o) {o["velocity_scaling"] = 1.5;}},
    Spoilt{"'timeout_s' must lie between 0 and 86400.000000",
      [](json & o) {o["timeout_s"] = 0;}}));
