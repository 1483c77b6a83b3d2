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


#include "ldos_planner/ompl_log.hpp"

#include <string>

#include <rclcpp/logging.hpp>

namespace ldos_planner
{
namespace
{

/// It concerns existing generators; those of a seeded plan are created after the seed.
bool is_about_a_seed(const std::string & text)
{
  return text.starts_with("Random number generation already started");
}

}  // namespace

OmplLog::OmplLog()
{
  ompl::msg::useOutputHandler(this);
}

OmplLog::~OmplLog()
{
  ompl::msg::restorePreviousOutputHandler();
}

void OmplLog::log(
  const std::string & text, ompl::msg::LogLevel level, const char * file, int line)
{
  if (is_about_a_seed(text)) {
    return;
  }
  const auto logger = rclcpp::get_logger("ldos_planner");
  if (level >= ompl::msg::LOG_ERROR) {
    RCLCPP_ERROR(logger, "%s:%i - %s", file, line, text.c_str());
  } else if (level == ompl::msg::LOG_WARN) {
    RCLCPP_WARN(logger, "%s:%i - %s", file, line, text.c_str());
  } else {
    RCLCPP_DEBUG(logger, "%s:%i - %s", file, line, text.c_str());
  }
}

}  // namespace ldos_planner
