// Independent items of work on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace ldos::ctf {

// Runs `work(0) … work(count - 1)` on up to `threads` threads, in no order. Of several
// exceptions, that of the lowest item is thrown, so that a refusal does not depend on timing.
void for_each_index(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work);

}  // namespace ldos::ctf
