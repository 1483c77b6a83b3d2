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

#include <cstdint>
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "ldos_guard/aimd.hpp"

using ldos_guard::Aimd;
using ldos_guard::AimdSettings;

nlohmann::json law_table()
{
  std::ifstream file(LAW_TABLE);
  return nlohmann::json::parse(file);
}

AimdSettings settings_of(const nlohmann::json & row)
{
  const auto & given = row.at("settings");
  AimdSettings settings;
  settings.late_share = given.value("late_share", settings.late_share);
  settings.least_share = given.value("least_share", settings.least_share);
  settings.decrease = given.value("decrease", settings.decrease);
  settings.calm_windows = given.value("calm_windows", settings.calm_windows);
  settings.increase = given.value("increase", settings.increase);
  return settings;
}

TEST(Aimd, TheTableIsKept)
{
  const auto table = law_table();
  ASSERT_GE(table.size(), 12U);
  for (const auto & row : table) {
    SCOPED_TRACE(row.at("name").get<std::string>());
    Aimd law(settings_of(row));
    const auto & windows = row.at("windows");
    ASSERT_EQ(windows.size(), row.at("shares").size());
    for (std::size_t index = 0; index < windows.size(); ++index) {
      const auto & window = windows[index];
      law.observe({window[0], window[1], window[2] == 1});
      EXPECT_NEAR(law.share(), row.at("shares")[index].get<double>(), 1e-12) << "window " << index;
    }
    EXPECT_EQ(law.decreases(), row.at("decreases").get<std::uint64_t>());
    EXPECT_EQ(law.increases(), row.at("increases").get<std::uint64_t>());
  }
}

TEST(Aimd, TheShareStaysInItsRange)
{
  Aimd law(AimdSettings{});
  std::uint64_t state = 1;
  for (int window = 0; window < 100'000; ++window) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const auto received = (state >> 33) % 20;
    law.observe({received, received == 0 ? 0 : (state >> 40) % (received + 1),
        (state >> 50) % 50 == 0});
    ASSERT_GE(law.share(), 0.01);
    ASSERT_LE(law.share(), 1.0);
  }
  EXPECT_GT(law.decreases(), 0U);
}
