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

#include <cstdint>
#include <optional>
#include <string>

#include "commands.hpp"
#include "ldos_goal_client/motion.hpp"

using ldos_goal_client::Motion;
using ldos_goal_client::Phase;
using ldos_goal_client::Plan;
using ldos_goal_client::WrittenMarkers;
using ldos_goal_client::goal_id;
using ldos_goal_client::good_command;
using ldos_goal_client::parse_command;
using ldos_goal_client::phase_of;
using ldos_goal_client::phases;

namespace
{

class MotionTest : public testing::Test
{
protected:
  Motion motion(bool is_trial, bool plan_only = false)
  {
    auto object = good_command();
    object["plan_only"] = plan_only;
    if (!is_trial) {
      object["trial"] = nullptr;
    }
    return Motion(parse_command(object.dump()), markers, [this]() {return now_ns;});
  }

  WrittenMarkers markers;
  std::int64_t now_ns{1000};
};

}  // namespace

TEST_F(MotionTest, MarksATrialFromBeginToEnd)
{
  auto trial = motion(true);
  trial.begin();
  for (const Phase phase : phases) {
    trial.enter(phase);
    now_ns += 10;
  }
  trial.end(1, Plan{1'900'000'000, 40});
  EXPECT_EQ(
    markers.text,
    "begin " + goal_id + " cpu_load 3\n"
    "phase " + goal_id + " goal_sent\n"
    "phase " + goal_id + " goal_accepted\n"
    "phase " + goal_id + " planning\n"
    "phase " + goal_id + " executing\n"
    "phase " + goal_id + " result\n"
    "plan " + goal_id + " 1900000000 40\n"
    "end " + goal_id + " 1\n");
  EXPECT_EQ(trial.stamps().at(Phase::goal_sent), 1000);
  EXPECT_EQ(trial.stamps().at(Phase::result), 1040);
}

TEST_F(MotionTest, APhaseIsEnteredOnce)
{
  auto trial = motion(true);
  trial.enter(Phase::planning);
  now_ns = 2000;
  trial.enter(Phase::planning);
  EXPECT_EQ(markers.text, "phase " + goal_id + " planning\n");
  EXPECT_EQ(trial.stamps().at(Phase::planning), 1000);
}

TEST_F(MotionTest, EndsWithAResultAtItsTimeout)
{
  auto trial = motion(true);
  trial.enter(Phase::goal_sent);
  now_ns = 5000;
  trial.end(-6, std::nullopt);
  EXPECT_EQ(
    markers.text,
    "phase " + goal_id + " goal_sent\n"
    "phase " + goal_id + " result\n"
    "end " + goal_id + " -6\n");
  EXPECT_EQ(trial.stamps().at(Phase::result), 5000);
  EXPECT_EQ(trial.stamps().at(Phase::planning), std::nullopt);
}

TEST_F(MotionTest, OtherGoalsAreStampedButNotMarked)
{
  auto other = motion(false);
  other.begin();
  other.enter(Phase::goal_sent);
  other.end(1, Plan{1, 1});
  EXPECT_EQ(markers.text, "");
  EXPECT_EQ(other.stamps().at(Phase::goal_sent), 1000);
  EXPECT_EQ(other.stamps().at(Phase::result), 1000);
}

TEST_F(MotionTest, AGoalThatIsOnlyPlannedHasPhasesAndAPlan)
{
  auto planned = motion(false, true);
  planned.begin();
  planned.enter(Phase::planning);
  planned.end(1, Plan{1'900'000'000, 40});
  EXPECT_EQ(
    markers.text,
    "phase " + goal_id + " planning\n"
    "phase " + goal_id + " result\n"
    "plan " + goal_id + " 1900000000 40\n");
}

TEST_F(MotionTest, IsOverdueAfterItsTimeout)
{
  const auto trial = motion(true);
  now_ns += 30'000'000'000;
  EXPECT_FALSE(trial.is_overdue());
  now_ns += 1;
  EXPECT_TRUE(trial.is_overdue());
}

TEST(Phase, FeedbackStatesBeginPhases)
{
  EXPECT_EQ(phase_of("PLANNING"), Phase::planning);
  EXPECT_EQ(phase_of("MONITOR"), Phase::executing);
  EXPECT_EQ(phase_of("IDLE"), std::nullopt);
  EXPECT_EQ(phase_of("LOOK"), std::nullopt);
}
