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

#include "ldos_cost/settings.hpp"

#include <charconv>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace ldos_cost
{
namespace
{

constexpr double ns_per_s = 1e9;

template<typename Number>
Number read_number(std::string_view name, std::string_view text)
{
  Number value{};
  const auto * end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc{} || read.ptr != end || !(value > Number{})) {
    throw std::invalid_argument(
            std::string(name) + " is '" + std::string(text) + "'; it must be a number above 0");
  }
  return value;
}

using Setter = std::function<void (Settings &, std::string_view name, std::string_view text)>;

Setter whole(std::int64_t Settings::* member)
{
  return [member](Settings & settings, std::string_view name, std::string_view text) {
           settings.*member = read_number<std::int64_t>(name, text);
         };
}

Setter real(double Settings::* member)
{
  return [member](Settings & settings, std::string_view name, std::string_view text) {
           settings.*member = read_number<double>(name, text);
         };
}

const std::map<std::string_view, Setter> & setters()
{
  static const std::map<std::string_view, Setter> known{
    {"rung", [](Settings & settings, std::string_view, std::string_view text) {
        settings.rung = text;
      }},
    {"topics", whole(&Settings::topics)},
    {"subscribers", whole(&Settings::subscribers)},
    {"nodes", whole(&Settings::nodes)},
    {"rate_hz", real(&Settings::rate_hz)},
    {"size_bytes", whole(&Settings::size_bytes)},
    {"ticks", whole(&Settings::ticks)},
    {"match_s", real(&Settings::match_s)}};
  return known;
}

}  // namespace

std::int64_t Settings::period_ns() const
{
  return static_cast<std::int64_t>(ns_per_s / rate_hz);
}

std::int64_t Settings::deliveries() const
{
  return ticks * topics * subscribers;
}

Settings read_settings(int count, const char * const * words)
{
  Settings settings;
  for (int place = 1; place < count; ++place) {
    const std::string_view word = words[place];
    const auto equals = word.find('=');
    const auto name = word.substr(0, equals);
    const auto found = setters().find(name);
    if (equals == std::string_view::npos || found == setters().end()) {
      throw std::invalid_argument("'" + std::string(word) + "' is no setting; write name=value");
    }
    found->second(settings, name, word.substr(equals + 1));
  }
  return settings;
}

}  // namespace ldos_cost
