#include "parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace ldos::ctf {

namespace {

// Items are handed out in order. After a failure no higher item is begun, but every lower one is.
class Items {
 public:
  Items(std::size_t count, const std::function<void(std::size_t)>& work) : work_(work), end_(count) {}

  void run() {
    for (std::size_t item = next_++; item < end_; item = next_++) {
      try {
        work_(item);
      } catch (...) {
        keep(item, std::current_exception());
      }
    }
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void keep(std::size_t item, std::exception_ptr failure) {
    const std::lock_guard guard(lock_);
    if (item >= end_) return;
    end_ = item;
    failure_ = std::move(failure);
  }

  const std::function<void(std::size_t)>& work_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::size_t> end_;
  std::mutex lock_;
  std::exception_ptr failure_;
};

}  // namespace

void for_each_index(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work) {
  Items items(count, work);
  {
    std::vector<std::jthread> others;
    const std::size_t all = std::min<std::size_t>(threads, count);
    for (std::size_t i = 1; i < all; ++i) others.emplace_back([&items] { items.run(); });
    items.run();
  }
  items.rethrow();
}

}  // namespace ldos::ctf
