#pragma once

namespace ldos::pingpong {

// Confines the calling thread to a CPU; a negative number leaves it as it is. Throws std::system_error.
void confine_thread(int cpu);

}  // namespace ldos::pingpong
