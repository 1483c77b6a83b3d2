#include "states.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <numeric>
#include <unordered_map>

namespace ldos::execution {

namespace {

constexpr std::int64_t kWaitBits = 0xFF;
constexpr std::int64_t kDeadBits = 0x30;
constexpr std::int32_t kIdle = 0;
constexpr std::int32_t kLargestTid = 1 << 22;  // the kernel's own limit

State after(Kind kind) {
  switch (kind) {
    case Kind::preempted: return State::runnable;
    case Kind::went_to_sleep: return State::blocked;
    case Kind::switched_in: return State::running;
    default: return State::unknown;
  }
}

bool is_switch(Kind kind) { return kind != Kind::woken && kind != Kind::migrated; }

// Small numbers for pairs of a host and a number within it, in order of first occurrence.
class Numbering {
 public:
  explicit Numbering(std::size_t hosts) : direct_(hosts) {}

  std::size_t operator()(std::int32_t host, std::int32_t number) {
    if (number >= 0 && number < kLargestTid) [[likely]] {
      auto& table = direct_[static_cast<std::size_t>(host)];
      if (table.empty()) table = ctf::Buffer(kLargestTid, sizeof(std::uint32_t));
      std::uint32_t& found = table.as<std::uint32_t>()[number];
      if (found == 0) [[unlikely]] found = add(host, number) + 1;
      return found - 1;
    }
    const auto [found, is_new] = others_.try_emplace(key(host, number), 0);
    if (is_new) found->second = add(host, number);
    return found->second;
  }

  [[nodiscard]] const std::vector<std::pair<std::int32_t, std::int32_t>>& all() const { return all_; }

 private:
  static std::uint64_t key(std::int32_t host, std::int32_t number) {
    return static_cast<std::uint64_t>(host) << 32 | static_cast<std::uint32_t>(number);
  }

  std::uint32_t add(std::int32_t host, std::int32_t number) {
    all_.emplace_back(host, number);
    return static_cast<std::uint32_t>(all_.size() - 1);
  }

  std::vector<ctf::Buffer> direct_;
  std::unordered_map<std::uint64_t, std::uint32_t> others_;
  std::vector<std::pair<std::int32_t, std::int32_t>> all_;
};

struct Event {
  std::int32_t host;
  std::int32_t tid;
  std::int64_t time_ns;
  Kind kind;
  std::int32_t cpu;
  std::int32_t name;
  std::int32_t rival = kNobody;  // the thread that took the CPU of a preempted one
  std::int32_t rival_name = kNobody;
};

// Calls `visit` for the effect of each event on each thread, in time order and in a possible order within a tick:
// threads leave their CPUs, migrate and are woken, get CPUs; and those that leave within the tick leave.
template <typename Visit>
class Walk {
 public:
  Walk(const Scheduling& all, const Visit& visit) : all_(all), visit_(visit), moved_(all.moves.size(), 0) {}

  void run() {
    while (const std::int64_t* next = earliest()) tick(*next);
  }

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  const std::int64_t* earliest() {
    const std::int64_t* found = nullptr;
    const auto consider = [&](const View<std::int64_t>& times, std::size_t row, std::size_t rows) {
      if (row < rows && (found == nullptr || times[row] < now_)) {
        now_ = times[row];
        found = &now_;
      }
    };
    consider(all_.switches.time_ns, switched_, all_.switches.rows);
    for (std::size_t i = 0; i < moved_.size(); ++i) consider(all_.moves[i].time_ns, moved_[i], all_.moves[i].rows);
    return found;
  }

  void tick(std::int64_t time_ns) {
    const std::size_t first = switched_;
    at_once_.clear();
    for (; switched_ < all_.switches.rows && all_.switches.time_ns[switched_] == time_ns; ++switched_) {
      if (left_at_once(switched_)) {
        at_once_.push_back(switched_);
      } else {
        leave(switched_);
      }
    }
    for (std::size_t i = 0; i < moved_.size(); ++i) {
      const Moves& moves = all_.moves[i];
      for (; moved_[i] < moves.rows && moves.time_ns[moved_[i]] == time_ns; ++moved_[i]) move(moves, moved_[i]);
    }
    for (std::size_t row = first; row < switched_; ++row) enter(row);
    for (const std::size_t row : at_once_) leave(row);
  }

  // True if a switch removes the thread that the CPU's last switch brought, within one clock tick.
  bool left_at_once(std::size_t row) {
    const Switches& table = all_.switches;
    const std::size_t cpu = cpus_(static_cast<std::int32_t>(table.trace[row]), table.cpu[row]);
    if (cpu >= last_.size()) last_.resize(cpu + 1, kNone);
    const std::size_t before = std::exchange(last_[cpu], row);
    return before != kNone && table.time_ns[before] == table.time_ns[row] &&
           table.next_tid[before] == table.prev_tid[row];
  }

  void leave(std::size_t row) {
    const Switches& table = all_.switches;
    const std::int64_t waits = table.prev_state[row] & kWaitBits;
    const Kind kind = waits == 0 ? Kind::preempted : (waits & kDeadBits) != 0 ? Kind::died : Kind::went_to_sleep;
    Event event{host(table.trace[row]), table.prev_tid[row], table.time_ns[row], kind, table.cpu[row], table.prev_name[row]};
    if (kind == Kind::preempted && table.next_tid[row] != kIdle) {
      event.rival = table.next_tid[row];
      event.rival_name = table.next_name[row];
    }
    visit(event);
  }

  void enter(std::size_t row) {
    const Switches& table = all_.switches;
    visit({host(table.trace[row]), table.next_tid[row], table.time_ns[row], Kind::switched_in, table.cpu[row],
           table.next_name[row]});
  }

  void move(const Moves& table, std::size_t row) {
    visit({host(table.trace[row]), table.tid[row], table.time_ns[row], table.kind, table.cpu[row], table.name[row]});
  }

  void visit(const Event& event) {
    if (event.host >= 0 && event.tid != kIdle) visit_(event);
  }

  [[nodiscard]] std::int32_t host(std::uint32_t trace) const { return all_.host_of_trace[trace]; }

  const Scheduling& all_;
  const Visit& visit_;
  std::size_t switched_ = 0;
  std::vector<std::size_t> moved_;
  std::vector<std::size_t> at_once_;
  Numbering cpus_{all_.host_of_trace.size()};
  std::vector<std::size_t> last_;
  std::int64_t now_ = 0;
};

// The number of losses on a host before a time, and the end of validity of a state that begins then.
class Epochs {
 public:
  Epochs(const std::vector<std::pair<std::int64_t, std::int64_t>>& losses, std::int64_t until_ns)
      : losses_(&losses), until_ns_(until_ns) {}

  // Times must not decrease. Returns kNobody within a loss.
  std::int32_t at(std::int64_t time_ns) {
    while (before_ < losses_->size() && (*losses_)[before_].second < time_ns) ++before_;
    return before_ < losses_->size() && time_ns > (*losses_)[before_].first ? kNobody
                                                                            : static_cast<std::int32_t>(before_);
  }

  [[nodiscard]] std::int64_t limit_ns() const {
    return before_ < losses_->size() ? std::min((*losses_)[before_].first, until_ns_) : until_ns_;
  }

 private:
  const std::vector<std::pair<std::int64_t, std::int64_t>>* losses_;
  std::int64_t until_ns_;
  std::size_t before_ = 0;
};

// The last event of each host's kernel.
std::vector<std::int64_t> last_times(const Scheduling& all) {
  std::vector<std::int64_t> last(all.losses.size(), 0);
  const auto scan = [&](const auto& table) {
    for (std::size_t row = 0; row < table.rows; ++row) {
      const std::int32_t host = all.host_of_trace[table.trace[row]];
      if (host >= 0) last[static_cast<std::size_t>(host)] = std::max(last[static_cast<std::size_t>(host)], table.time_ns[row]);
    }
  };
  scan(all.switches);
  for (const Moves& moves : all.moves) scan(moves);
  return last;
}

// An interval that has begun.
struct Interval {
  std::int64_t begin_ns;
  std::int64_t limit_ns;
  State state;
  std::int32_t cpu;
  std::int32_t name;
  std::int32_t rival;
  std::int32_t rival_name;
};

struct Thread {
  std::int32_t epoch = kNobody;
  bool has_switch = false;  // in this epoch, like all members below
  bool is_woken = false;    // since then
  State switched_to = State::unknown;
  std::int32_t rival = kNobody;
  std::int32_t rival_name = kNobody;
  State last_state = State::unknown;
  std::int32_t last_cpu = kNobody;
  Interval open{};
};

// Follows all threads; `emit` receives the number of a thread and a finished interval with its end.
template <typename Emit>
class Follower {
 public:
  Follower(const Scheduling& all, const std::vector<std::int64_t>& last_ns, Numbering& numbers, const Emit& emit)
      : numbers_(numbers), emit_(emit) {
    for (std::size_t host = 0; host < all.losses.size(); ++host) epochs_.emplace_back(all.losses[host], last_ns[host]);
  }

  void operator()(const Event& event) {
    Epochs& epochs = epochs_[static_cast<std::size_t>(event.host)];
    const std::int32_t epoch = epochs.at(event.time_ns);
    if (epoch == kNobody) return;
    const std::size_t number = numbers_(event.host, event.tid);
    if (number >= threads_.size()) threads_.resize(number + 1);
    Thread& thread = threads_[number];
    const bool is_first = epoch != thread.epoch;
    if (is_first) begin_epoch(number, thread, epoch);
    note(thread, event);
    const State state = state_of(thread);
    const bool changed = is_first || is_switch(event.kind) || state != thread.last_state ||
                         (state == State::runnable && event.cpu != thread.last_cpu);
    thread.last_state = state;
    thread.last_cpu = event.cpu;
    if (!changed) return;
    if (!is_first && !is_contradicted(thread.open, event)) finish(number, thread.open, event.time_ns);
    thread.open = {event.time_ns, epochs.limit_ns(), state, event.cpu, event.name, thread.rival, thread.rival_name};
  }

  void end() {
    for (std::size_t number = 0; number < threads_.size(); ++number) {
      if (threads_[number].epoch != kNobody) finish(number, threads_[number].open, threads_[number].open.limit_ns);
    }
  }

 private:
  void begin_epoch(std::size_t number, Thread& thread, std::int32_t epoch) {
    if (thread.epoch != kNobody) finish(number, thread.open, thread.open.limit_ns);
    thread = Thread{};
    thread.epoch = epoch;
  }

  static void note(Thread& thread, const Event& event) {
    if (is_switch(event.kind)) {
      thread.has_switch = true;
      thread.is_woken = false;
      thread.switched_to = after(event.kind);
      thread.rival = event.rival;
      thread.rival_name = event.rival_name;
    } else if (event.kind == Kind::woken) {
      thread.is_woken = true;
    }
  }

  // A switch sets the state; a later wakeup makes a thread runnable unless it is running or waiting for a CPU.
  static State state_of(const Thread& thread) {
    const State state = thread.has_switch ? thread.switched_to : State::unknown;
    return thread.is_woken && state >= State::blocked ? State::runnable : state;
  }

  // Only a running thread leaves a CPU, and only its own.
  static bool is_contradicted(const Interval& open, const Event& event) {
    const bool leaves = event.kind <= Kind::died;
    const bool runs = open.state == State::running;
    return (leaves && (!runs || event.cpu != open.cpu)) || (runs && event.kind == Kind::switched_in);
  }

  void finish(std::size_t number, const Interval& open, std::int64_t end_ns) {
    if (open.state != State::unknown && end_ns > open.begin_ns) emit_(number, open, end_ns);
  }

  std::vector<Epochs> epochs_;
  std::vector<Thread> threads_;
  Numbering& numbers_;
  const Emit& emit_;
};

// Events of each thread, as many as it can have intervals.
std::vector<std::size_t> count_events(const Scheduling& all, Numbering& numbers) {
  std::vector<std::size_t> counts;
  const auto count = [&](std::uint32_t trace, std::int32_t tid) {
    const std::int32_t host = all.host_of_trace[trace];
    if (host < 0 || tid == kIdle) return;
    const std::size_t number = numbers(host, tid);
    if (number >= counts.size()) counts.resize(number + 1, 0);
    ++counts[number];
  };
  for (std::size_t row = 0; row < all.switches.rows; ++row) {
    count(all.switches.trace[row], all.switches.prev_tid[row]);
    count(all.switches.trace[row], all.switches.next_tid[row]);
  }
  for (const Moves& moves : all.moves) {
    for (std::size_t row = 0; row < moves.rows; ++row) count(moves.trace[row], moves.tid[row]);
  }
  return counts;
}

// Numbers of threads, by host and tid.
std::vector<std::size_t> in_order(const Numbering& numbers) {
  std::vector<std::size_t> order(numbers.all().size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto& all = numbers.all();
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return all[a] < all[b]; });
  return order;
}

std::uint32_t word(std::int32_t name) { return static_cast<std::uint32_t>(name + 1); }

// Rows of intervals, with a reserved range per thread.
class Writer {
 public:
  Writer(const Numbering& numbers, const std::vector<std::size_t>& counts) : numbers_(numbers), order_(in_order(numbers)) {
    std::size_t room = 0;
    first_.resize(counts.size());
    for (const std::size_t number : order_) first_[number] = std::exchange(room, room + counts[number]);
    next_ = first_;
    for (const auto& [buffer, size] : columns()) *buffer = ctf::Buffer(room, size);
  }

  void write(std::size_t number, const Interval& one, std::int64_t end_ns) {
    const std::size_t row = next_[number]++;
    const bool waited = one.state == State::runnable;
    found_.host.as<std::uint16_t>()[row] = static_cast<std::uint16_t>(numbers_.all()[number].first);
    found_.tid.as<std::int64_t>()[row] = numbers_.all()[number].second;
    found_.name.as<std::uint32_t>()[row] = word(one.name);
    found_.begin_ns.as<std::int64_t>()[row] = one.begin_ns;
    found_.end_ns.as<std::int64_t>()[row] = end_ns;
    found_.state.as<std::uint8_t>()[row] = static_cast<std::uint8_t>(one.state);
    found_.cpu.as<std::int32_t>()[row] = one.state == State::blocked ? kNobody : one.cpu;
    found_.rival.as<std::int32_t>()[row] = waited ? one.rival : kNobody;
    found_.rival_name.as<std::uint32_t>()[row] = waited ? word(one.rival_name) : 0;
  }

  // The columns without unused rows.
  Intervals finish() {
    for (const std::size_t number : order_) {
      const std::size_t rows = next_[number] - first_[number];
      for (const auto& [buffer, size] : columns()) {
        std::uint8_t* const data = buffer->data();
        if (found_.rows != first_[number]) std::memmove(data + found_.rows * size, data + first_[number] * size, rows * size);
      }
      found_.rows += rows;
    }
    return std::move(found_);
  }

 private:
  std::array<std::pair<ctf::Buffer*, std::size_t>, 9> columns() {
    return {{{&found_.host, 2},
             {&found_.tid, 8},
             {&found_.name, 4},
             {&found_.begin_ns, 8},
             {&found_.end_ns, 8},
             {&found_.state, 1},
             {&found_.cpu, 4},
             {&found_.rival, 4},
             {&found_.rival_name, 4}}};
  }

  const Numbering& numbers_;
  std::vector<std::size_t> order_;
  std::vector<std::size_t> first_;
  std::vector<std::size_t> next_;
  Intervals found_;
};

}  // namespace

Intervals build_states(const Scheduling& all) {
  Numbering numbers(all.losses.size());
  Writer writer(numbers, count_events(all, numbers));
  const auto emit = [&](std::size_t number, const Interval& one, std::int64_t end_ns) { writer.write(number, one, end_ns); };
  Follower follower(all, last_times(all), numbers, emit);
  const auto visit = [&](const Event& event) { follower(event); };
  Walk(all, visit).run();
  follower.end();
  return writer.finish();
}

}  // namespace ldos::execution
