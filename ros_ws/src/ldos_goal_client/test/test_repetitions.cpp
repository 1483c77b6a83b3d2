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

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "ldos_goal_client/repetitions.hpp"

using ldos_goal_client::Goal;
using ldos_goal_client::Joints;
using ldos_goal_client::MoveCommand;
using ldos_goal_client::MoveReport;
using ldos_goal_client::Repetitions;
using ldos_goal_client::RunSettings;
using ldos_goal_client::exit_goal_failed;
using ldos_goal_client::exit_no_stack;
using ldos_goal_client::exit_not_home;
using ldos_goal_client::exit_succeeded;
using ldos_goal_client::is_goal_id;
using ldos_goal_client::random_goal_id;

namespace
{

const Goal home{"home", "tip", Joints{{"a", 0.0}}};
const std::vector<Goal> two_goals{
  {"left", "tip", Joints{{"a", 1.0}}}, {"right", "tip", Joints{{"a", -1.0}}}};
const RunSettings settings{"cpu_load", 2, std::nullopt, 5.0, 0.5, 0.25, 30.0};

MoveReport report_of(const MoveCommand & command, std::int32_t code)
{
  return {command.goal_id, code, "", {}, {}, 0.0, {}};
}

class RepetitionsTest : public testing::Test
{
protected:
  /// Carries out all goals; each ends with the code in `codes` for its name, or 1.
  std::vector<std::string> run(Repetitions & run, const std::map<std::string, std::int32_t> & codes)
  {
    std::vector<std::string> sent;
    while (const auto command = run.next()) {
      const auto tag = command->trial ? " " + std::to_string(command->trial->index) : "";
      sent.push_back(command->goal.name + tag);
      const auto code = codes.find(command->goal.name);
      run.ended(*command, report_of(*command, code == codes.end() ? 1 : code->second));
    }
    EXPECT_TRUE(run.is_over());
    return sent;
  }

  int line_count() const
  {
    const auto text = lines.str();
    return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  }

  std::ostringstream lines;
};

}  // namespace

TEST_F(RepetitionsTest, GoHomeBeforeEachGoal)
{
  Repetitions repetitions(two_goals, home, settings, lines);
  const std::vector<std::string> expected{
    "home", "left 0", "home", "right 1", "home", "left 2", "home", "right 3"};
  EXPECT_EQ(run(repetitions, {}), expected);
  EXPECT_EQ(repetitions.exit_code(), exit_succeeded);
}

TEST_F(RepetitionsTest, GiveEachTrialTheNextSeedAndEveryMotionHomeTheFirst)
{
  auto seeded = settings;
  seeded.seed = 7;
  Repetitions repetitions(two_goals, home, seeded, lines);
  std::vector<std::optional<std::uint32_t>> seeds;
  while (const auto command = repetitions.next()) {
    seeds.push_back(command->seed);
  }
  const std::vector<std::optional<std::uint32_t>> expected{7, 7, 7, 8, 7, 9, 7, 10};
  EXPECT_EQ(seeds, expected);
}

TEST_F(RepetitionsTest, PrintOneLineForEachTrialOnly)
{
  Repetitions repetitions(two_goals, home, settings, lines);
  run(repetitions, {});
  EXPECT_EQ(line_count(), 4);
}

TEST_F(RepetitionsTest, WithoutHomeGoFromGoalToGoal)
{
  Repetitions repetitions(two_goals, std::nullopt, settings, lines);
  EXPECT_EQ(run(repetitions, {}).size(), 4U);
}

TEST_F(RepetitionsTest, CarryTheSettings)
{
  Repetitions repetitions(two_goals, std::nullopt, settings, lines, []() {return "an id";});
  const auto command = repetitions.next();
  ASSERT_TRUE(command);
  EXPECT_EQ(command->goal_id, "an id");
  EXPECT_EQ(command->trial->scenario, "cpu_load");
  EXPECT_EQ(command->planning_time_s, 5.0);
  EXPECT_EQ(command->velocity_scaling, 0.5);
  EXPECT_EQ(command->acceleration_scaling, 0.25);
  EXPECT_EQ(command->timeout_s, 30.0);
  EXPECT_FALSE(command->start);
}

TEST_F(RepetitionsTest, ContinueAfterAFailedGoal)
{
  Repetitions repetitions(two_goals, home, settings, lines);
  EXPECT_EQ(run(repetitions, {{"left", -6}}).size(), 8U);
  EXPECT_EQ(line_count(), 4);
  EXPECT_EQ(repetitions.exit_code(), exit_goal_failed);
}

TEST_F(RepetitionsTest, EndIfTheArmIsNotHome)
{
  Repetitions repetitions(two_goals, home, settings, lines);
  EXPECT_EQ(run(repetitions, {{"home", -4}}), std::vector<std::string>{"home"});
  EXPECT_EQ(line_count(), 0);
  EXPECT_EQ(repetitions.exit_code(), exit_not_home);
}

TEST_F(RepetitionsTest, EndWhenTheServerIsGone)
{
  Repetitions repetitions(two_goals, home, settings, lines);
  EXPECT_EQ(run(repetitions, {{"left", -25}}), (std::vector<std::string>{"home", "left 0"}));
  EXPECT_EQ(line_count(), 1);
  EXPECT_EQ(repetitions.exit_code(), exit_no_stack);
}

TEST(RandomGoalId, IsAGoalIdAndDifferentEachTime)
{
  const auto one = random_goal_id();
  EXPECT_TRUE(is_goal_id(one));
  EXPECT_NE(one, random_goal_id());
}
