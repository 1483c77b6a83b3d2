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


#include "ldos_planner/seed.hpp"

#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace ldos_planner
{
namespace
{

constexpr std::string_view mark = "#ldos_seed=";
constexpr Seed largest = std::numeric_limits<std::int32_t>::max();

bool is_unconstrained(const moveit_msgs::msg::Constraints & path)
{
  return path.joint_constraints.empty() && path.position_constraints.empty() &&
         path.orientation_constraints.empty() && path.visibility_constraints.empty();
}

}  // namespace

std::optional<Seed> seed_in(const std::string & name)
{
  const auto found = name.rfind(mark);
  if (found == std::string::npos) {
    return std::nullopt;
  }
  const std::string_view digits = std::string_view(name).substr(found + mark.size());
  const char * const end = digits.data() + digits.size();
  Seed seed{};
  const auto [rest, error] = std::from_chars(digits.data(), end, seed);
  const bool is_seed = error == std::errc{} && rest == end && seed > 0 && seed <= largest;
  return is_seed ? std::optional(seed) : std::nullopt;
}

std::optional<Seed> seed_of(const moveit_msgs::msg::MotionPlanRequest & request)
{
  const auto & goals = request.goal_constraints;
  if (goals.size() != 1 || !is_unconstrained(request.path_constraints)) {
    return std::nullopt;
  }
  return seed_in(goals.front().name);
}

}  // namespace ldos_planner
