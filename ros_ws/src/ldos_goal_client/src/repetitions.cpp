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

#include "ldos_goal_client/repetitions.hpp"

#include <array>
#include <iomanip>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <moveit_msgs/msg/move_it_error_codes.hpp>

namespace ldos_goal_client
{
namespace
{

using moveit_msgs::msg::MoveItErrorCodes;

MoveCommand command_for(const Goal & goal, const RunSettings & settings, std::string goal_id)
{
  MoveCommand command;
  command.goal_id = std::move(goal_id);
  command.goal = goal;
  command.seed = settings.seed;
  command.planning_time_s = settings.planning_time_s;
  command.velocity_scaling = settings.velocity_scaling;
  command.acceleration_scaling = settings.acceleration_scaling;
  command.timeout_s = settings.timeout_s;
  return command;
}

}  // namespace

std::string random_goal_id()
{
  std::random_device device;
  std::ostringstream text;
  text << std::hex << std::setfill('0');
  for (int word = 0; word < 4; ++word) {
    text << std::setw(8) << (device() & 0xffffffffU);
  }
  return text.str();
}

Repetitions::Repetitions(
  const std::vector<Goal> & goals, const std::optional<Goal> & home, const RunSettings & settings,
  std::ostream & lines, std::function<std::string()> draw_goal_id)
: lines_(lines)
{
  std::uint32_t index = 0;
  for (int repetition = 0; repetition < settings.repetitions; ++repetition) {
    for (const auto & goal : goals) {
      if (home) {
        waiting_.push_back(command_for(*home, settings, draw_goal_id()));
      }
      waiting_.push_back(command_for(goal, settings, draw_goal_id()));
      waiting_.back().trial = TrialTag{settings.scenario, index};
      if (settings.seed) {
        waiting_.back().seed = *settings.seed + index;
      }
      ++index;
    }
  }
}

void Repetitions::ready() {}

std::optional<MoveCommand> Repetitions::next()
{
  if (waiting_.empty()) {
    return std::nullopt;
  }
  MoveCommand command = std::move(waiting_.front());
  waiting_.pop_front();
  return command;
}

void Repetitions::ended(const MoveCommand & command, const MoveReport & report)
{
  const bool is_success = report.error_code == MoveItErrorCodes::SUCCESS;
  if (command.trial) {
    lines_ << to_line(report) << std::flush;
  }
  if (report.error_code == MoveItErrorCodes::COMMUNICATION_FAILURE) {
    exit_code_ = exit_no_stack;
    waiting_.clear();
  } else if (!command.trial && !is_success) {
    exit_code_ = exit_not_home;
    waiting_.clear();
  } else if (!is_success) {
    exit_code_ = exit_goal_failed;
  }
}

bool Repetitions::is_over() const
{
  return waiting_.empty();
}

ExitCode Repetitions::exit_code() const
{
  return exit_code_;
}

}  // namespace ldos_goal_client
