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

#include <sstream>
#include <string>

#include "commands.hpp"
#include "ldos_goal_client/dialogue.hpp"

using ldos_goal_client::Dialogue;
using ldos_goal_client::MoveReport;
using ldos_goal_client::goal_id;
using ldos_goal_client::good_command;
using ldos_goal_client::ready_line;
using ldos_goal_client::to_line;

namespace
{

class DialogueTest : public testing::Test
{
protected:
  std::ostringstream lines;
  std::string complaints;
  Dialogue dialogue{lines, [this](const std::string & reason) {complaints += reason + "\n";}};
};

}  // namespace

TEST_F(DialogueTest, ReportsThatItIsReady)
{
  dialogue.ready();
  EXPECT_EQ(lines.str(), ready_line());
}

TEST_F(DialogueTest, GivesCommandsInTheirOrder)
{
  auto second = good_command();
  second["goal_id"] = std::string(32, 'a');
  dialogue.hear(good_command().dump());
  dialogue.hear("");
  dialogue.hear(second.dump());
  EXPECT_EQ(dialogue.next()->goal_id, goal_id);
  EXPECT_EQ(dialogue.next()->goal_id, std::string(32, 'a'));
  EXPECT_FALSE(dialogue.next());
}

TEST_F(DialogueTest, IsOverWhenAllCommandsAreDone)
{
  dialogue.hear(good_command().dump());
  EXPECT_FALSE(dialogue.is_over());
  dialogue.close();
  EXPECT_FALSE(dialogue.is_over());
  EXPECT_TRUE(dialogue.next());
  EXPECT_TRUE(dialogue.is_over());
}

TEST_F(DialogueTest, AnswersABadCommandThatHasAnId)
{
  auto bad = good_command();
  bad.erase("timeout_s");
  dialogue.hear(bad.dump());
  dialogue.hear(good_command().dump());
  EXPECT_TRUE(dialogue.next());
  EXPECT_EQ(complaints, "bad command: 'timeout_s' must be a number\n");
  const auto answer = nlohmann::json::parse(lines.str());
  EXPECT_EQ(answer["goal_id"], goal_id);
  EXPECT_EQ(answer["error_code"], 99999);
  EXPECT_EQ(answer["message"], "bad command: 'timeout_s' must be a number");
}

TEST_F(DialogueTest, ComplainsOnlyWithoutAnId)
{
  dialogue.hear("move!");
  EXPECT_FALSE(dialogue.next());
  EXPECT_EQ(lines.str(), "");
  EXPECT_EQ(complaints.rfind("bad command: no JSON: ", 0), 0U);
}

TEST_F(DialogueTest, ReportsEveryGoal)
{
  const MoveReport report{goal_id, 1, "", {}, {}, 0.0, {}};
  dialogue.ended(report);
  EXPECT_EQ(lines.str(), to_line(report));
}
