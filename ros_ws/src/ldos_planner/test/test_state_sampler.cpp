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

#include <memory>
#include <vector>

#include <moveit/ompl_interface/parameterization/joint_space/joint_model_state_space.hpp>
#include <ompl/base/ScopedState.h>

#include "arm.hpp"
#include "ldos_planner/state_sampler.hpp"

using ldos_planner::Seed;
using ompl_interface::JointModelStateSpace;
using ompl_interface::ModelBasedStateSpaceSpecification;

namespace
{

using States = std::vector<std::vector<double>>;

States drawn(Seed seed)
{
  const auto space = std::make_shared<JointModelStateSpace>(
    ModelBasedStateSpaceSpecification(ldos_planner::make_arm(), ldos_planner::group));
  ldos_planner::seed_samplers(*space, seed);
  space->setup();
  const auto sampler = space->allocStateSampler();
  ompl::base::ScopedState<> state(space);
  ompl::base::ScopedState<> other(space);
  States states;
  for (int number = 0; number < 10; ++number) {
    sampler->sampleUniform(state.get());
    EXPECT_TRUE(space->satisfiesBounds(state.get()));
    states.push_back(state.reals());
    sampler->sampleUniformNear(other.get(), state.get(), 0.1);
    EXPECT_LE(space->distance(state.get(), other.get()), 0.1 * 3);
    states.push_back(other.reals());
  }
  return states;
}

}  // namespace

TEST(StateSampler, DrawsTheSameStatesFromTheSameSeed)
{
  EXPECT_EQ(drawn(7), drawn(7));
}

TEST(StateSampler, DrawsOtherStatesFromAnotherSeed)
{
  EXPECT_NE(drawn(7), drawn(8));
}
