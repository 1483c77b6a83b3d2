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

#include "ldos_goal_client/dialogue.hpp"

#include <optional>
#include <string>
#include <utility>

#include <moveit_msgs/msg/move_it_error_codes.hpp>

namespace ldos_goal_client
{

Dialogue::Dialogue(std::ostream & lines, std::function<void(const std::string &)> complain)
: lines_(lines), complain_(std::move(complain)) {}

void Dialogue::hear(std::string line)
{
  if (line.empty()) {
    return;
  }
  const std::lock_guard lock(mutex_);
  heard_.push_back(std::move(line));
}

void Dialogue::close()
{
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
}

void Dialogue::ready()
{
  lines_ << ready_line() << std::flush;
}

std::optional<MoveCommand> Dialogue::next()
{
  while (const auto line = next_line()) {
    try {
      return parse_command(*line);
    } catch (const BadCommand & bad) {
      refuse(bad);
    }
  }
  return std::nullopt;
}

std::optional<std::string> Dialogue::next_line()
{
  const std::lock_guard lock(mutex_);
  if (heard_.empty()) {
    return std::nullopt;
  }
  std::string line = std::move(heard_.front());
  heard_.pop_front();
  return line;
}

void Dialogue::refuse(const BadCommand & bad)
{
  complain_(std::string("bad command: ") + bad.what());
  if (bad.goal_id()) {
    MoveReport report;
    report.goal_id = *bad.goal_id();
    report.error_code = moveit_msgs::msg::MoveItErrorCodes::FAILURE;
    report.message = std::string("bad command: ") + bad.what();
    lines_ << to_line(report) << std::flush;
  }
}

void Dialogue::ended(const MoveReport & report)
{
  lines_ << to_line(report) << std::flush;
}

bool Dialogue::is_over() const
{
  const std::lock_guard lock(mutex_);
  return is_closed_ && heard_.empty();
}

}  // namespace ldos_goal_client
