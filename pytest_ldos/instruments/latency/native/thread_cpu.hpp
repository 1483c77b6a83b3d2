#pragma once

namespace ldos::pingpong {

// Confines the calling thread to a CPU; a negative number changes nothing. Throws std::system_error.
void confine_thread(int cpu);

}  // namespace ldos::pingpong
