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

#include "ldos_goal_client/line_reader.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace ldos_goal_client
{
namespace
{

/// Wakes a poll from another thread.
class Waker
{
public:
  Waker()
  : descriptor_(eventfd(0, EFD_CLOEXEC))
  {
    if (descriptor_ < 0) {
      throw std::system_error(errno, std::generic_category(), "eventfd");
    }
  }
  Waker(const Waker &) = delete;
  Waker & operator=(const Waker &) = delete;
  ~Waker() {close(descriptor_);}

  void wake() const {eventfd_write(descriptor_, 1);}
  int descriptor() const {return descriptor_;}

private:
  int descriptor_;
};

/// Waits for input or its end; false if `waker` woke it.
bool await_input(int descriptor, const Waker & waker)
{
  std::array<pollfd, 2> polled{{{descriptor, POLLIN, 0}, {waker.descriptor(), POLLIN, 0}}};
  while (poll(polled.data(), polled.size(), -1) < 0) {
    if (errno != EINTR) {
      return false;
    }
  }
  return polled[1].revents == 0;
}

/// Passes on the complete lines of `text` and leaves the rest in it.
void hand_over(std::string & text, const std::function<void(std::string)> & hear)
{
  std::size_t begin = 0;
  for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    hear(text.substr(begin, end - begin));
    begin = end + 1;
  }
  text.erase(0, begin);
}

void read_lines(
  const std::stop_token & stopping, int descriptor,
  const std::function<void(std::string)> & hear, const std::function<void()> & end)
{
  const Waker waker;
  const std::stop_callback wake(stopping, [&waker]() {waker.wake();});
  std::string text;
  std::array<char, 4096> buffer{};
  while (await_input(descriptor, waker)) {
    const auto count = read(descriptor, buffer.data(), buffer.size());
    if (count > 0) {
      text.append(buffer.data(), static_cast<std::size_t>(count));
      hand_over(text, hear);
    } else if (count == 0 || errno != EINTR) {
      break;
    }
  }
  if (!text.empty()) {
    hear(std::move(text));
  }
  end();
}

}  // namespace

LineReader::LineReader(
  int descriptor, std::function<void(std::string)> hear, std::function<void()> close)
: thread_([descriptor, hear = std::move(hear), close = std::move(close)](
      const std::stop_token & stopping) {read_lines(stopping, descriptor, hear, close);})
{}

}  // namespace ldos_goal_client
