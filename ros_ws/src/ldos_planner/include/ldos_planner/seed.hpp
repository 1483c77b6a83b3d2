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


#ifndef LDOS_PLANNER__SEED_HPP_
#define LDOS_PLANNER__SEED_HPP_

#include <cstdint>
#include <optional>
#include <string>

#include <moveit_msgs/msg/motion_plan_request.hpp>

namespace ldos_planner
{

/// Seed of all random numbers of one plan; never 0, which OMPL refuses.
using Seed = std::uint32_t;

/// The seed at the end of a goal constraint's name: `reach#ldos_seed=7`. A request to MoveIt has
/// no other place for it.
/// @return none if the name has no such end, or no number from 1 to 2^31 - 1.
std::optional<Seed> seed_in(const std::string & name);

/// The request's seed. None also for several goals and path constraints, which cannot be seeded.
std::optional<Seed> seed_of(const moveit_msgs::msg::MotionPlanRequest & request);

}  // namespace ldos_planner

#endif  // LDOS_PLANNER__SEED_HPP_
