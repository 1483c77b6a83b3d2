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


#include "ldos_planner/state_sampler.hpp"

#include <memory>

namespace ldos_planner
{
namespace
{

using Space = ompl_interface::ModelBasedStateSpace;

/// The joints of a state, after its cached values were invalidated.
double * renewed(ompl::base::State * state)
{
  auto * const joints = state->as<Space::StateType>();
  joints->clearKnownInformation();
  return joints->values;
}

}  // namespace

StateSampler::StateSampler(const Space & space, Seed seed)
: ompl::base::StateSampler(&space), numbers_(seed), group_(*space.getJointModelGroup()),
  bounds_(space.getJointsBounds()) {}

void StateSampler::sampleUniform(ompl::base::State * state)
{
  group_.getVariableRandomPositions(numbers_, renewed(state), bounds_);
}

void StateSampler::sampleUniformNear(
  ompl::base::State * state, const ompl::base::State * near, double distance)
{
  const double * const center = near->as<Space::StateType>()->values;
  group_.getVariableRandomPositionsNearBy(numbers_, renewed(state), bounds_, center, distance);
}

void StateSampler::sampleGaussian(
  ompl::base::State * state, const ompl::base::State * mean, double deviation)
{
  sampleUniformNear(state, mean, rng_.gaussian(0.0, deviation));
}

void seed_samplers(Space & space, Seed seed)
{
  space.setStateSamplerAllocator(
    [seed](const ompl::base::StateSpace * of) -> ompl::base::StateSamplerPtr {
      return std::make_shared<StateSampler>(*of->as<Space>(), seed);
    });
}

}  // namespace ldos_planner
