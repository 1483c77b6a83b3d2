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

#include <string>

#include "commands.hpp"
#include "ldos_goal_client/move_report.hpp"

using ldos_goal_client::MoveReport;
using ldos_goal_client::Phase;
using ldos_goal_client::Plan;
using ldos_goal_client::PoseError;
using ldos_goal_client::goal_id;
using ldos_goal_client::ready_line;
using ldos_goal_client::to_line;

TEST(MoveReport, HasTheKeysOfTheProtocolInOneLine)
{
  const Plan plan{1'900'000'000, 40};
  MoveReport report{goal_id, 1, "reached", {}, plan, 0.25, PoseError{0.5, 0.125}};
  report.stamps.enter(Phase::goal_sent, 17);
  report.stamps.enter(Phase::result, 9'223'372'036'854'775'807);
  EXPECT_EQ(
    to_line(report),
    R"({"event":"result","goal_id":"0123456789abcdef0123456789abcdef","error_code":1,)"
    R"("message":"reached","stamps_ns":{"goal_sent":17,"result":9223372036854775807},)"
    R"("plan_duration_ns":1900000000,"plan_points":40,"planning_time_s":0.25,)"
    R"("position_error_m":0.5,"rotation_error_rad":0.125})" "\n");
}

TEST(MoveReport, UnknownValuesAreNull)
{
  const auto object = nlohmann::json::parse(to_line(MoveReport{goal_id, -25, "", {}, {}, 0.0, {}}));
  EXPECT_TRUE(object["plan_duration_ns"].is_null());
  EXPECT_EQ(object["plan_points"], 0);
  EXPECT_EQ(object["planning_time_s"], 0.0);
  EXPECT_TRUE(object["position_error_m"].is_null());
  EXPECT_TRUE(object["rotation_error_rad"].is_null());
  EXPECT_EQ(object["stamps_ns"], nlohmann::json::object());
}

TEST(MoveReport, AnyMessageStaysOneLineOfJson)
{
  const MoveReport report{goal_id, 1, "a\nb\"\x1b[31m\xff", {}, {}, 0.0, {}};
  const auto line = to_line(report);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_EQ(line.find('\x1b'), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(line)["message"], "a\nb\"\x1b[31m\uFFFD");
}

TEST(Ready, IsAnEvent)
{
  EXPECT_EQ(ready_line(), "{\"event\":\"ready\",\"plan_only\":true}\n");
}
