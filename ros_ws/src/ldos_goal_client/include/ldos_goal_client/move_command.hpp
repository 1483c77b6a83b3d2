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

#ifndef LDOS_GOAL_CLIENT__MOVE_COMMAND_HPP_
#define LDOS_GOAL_CLIENT__MOVE_COMMAND_HPP_

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "ldos_goal_client/goal.hpp"

namespace ldos_goal_client
{

/// Marks a goal as a measured trial.
struct TrialTag
{
  std::string scenario;
  std::uint32_t index{};
};

/// A command of the interactive mode to send a goal.
struct MoveCommand
{
  /// 32 hex characters; also the id of the action's goal.
  std::string goal_id;
  Goal goal;
  /// Seed of the planner, from 1 to 2^31 - 1; none for a random one.
  std::optional<std::uint32_t> seed;
  /// Set for measured goals, which get markers in the trace.
  std::optional<TrialTag> trial;
  /// Joint positions at the start of the plan; none for the present ones.
  std::optional<Joints> start;
  double planning_time_s{};
  double velocity_scaling{};
  double acceleration_scaling{};
  /// Wall-clock time limit of the goal.
  double timeout_s{};
  /// The goal is planned and not executed; its phases and its plan are marked.
  bool plan_only{};
};

/// A line that is no command.
class BadCommand : public std::runtime_error
{
public:
  BadCommand(const std::string & reason, std::optional<std::string> goal_id);

  /// The command's goal id, if it could be read.
  const std::optional<std::string> & goal_id() const noexcept;

private:
  std::optional<std::string> goal_id_;
};

/// A command from one line of JSON with the keys of `MoveCommand` in
/// pytest_ldos/robot/stack/lines.py.
/// @throws BadCommand
MoveCommand parse_command(const std::string & line);

/// True if `text` is 32 hex characters.
bool is_goal_id(const std::string & text);

}  // namespace ldos_goal_client

#endif  // LDOS_GOAL_CLIENT__MOVE_COMMAND_HPP_
