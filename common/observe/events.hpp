#pragma once
// What each rank did, and when, on the virtual clock: the one list behind every timeline, whether
// drawn in the terminal, as SVG or as a Chrome trace.
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace fivecuts {

/// The two timelines of a rank: what the caller does, and what async() does beside it.
enum class Lane : std::uint8_t { compute, comm };

/// One thing that a lane was busy with. The events of a lane follow one another and never overlap.
struct Event {
  enum class Kind : std::uint8_t { compute, message, collective } kind = Kind::compute;
  Lane lane = Lane::compute;
  std::string name;           ///< "forward", "exchange", "all_reduce"
  double start = 0, end = 0;  ///< seconds of virtual time
  double waited = 0;          ///< seconds at its beginning in which it waited for another rank
  std::int64_t bytes = 0;     ///< sent and received by this rank
  std::string communicator;   ///< of a message or collective
  bool operator==(const Event&) const = default;
};

/// Events of one rank. Records nothing until told to, since a long run would fill the memory. Safe
/// to use from the rank's two threads.
class EventLog {
 public:
  void record(bool on);
  bool recording() const;
  void add(Event event);
  /// In the order of their start, the compute lane first where two start together.
  std::vector<Event> events() const;
  void clear();

 private:
  mutable std::mutex mutex_;
  bool recording_ = false;
  std::vector<Event> events_;
};

/// The events of all ranks of one run, to be drawn: ranks[r] is rank r's.
struct Timeline {
  std::string title;
  std::vector<std::vector<Event>> ranks;
  bool slots = false;  ///< the times are slots (the cluster `unit`), not seconds
};

}  // namespace fivecuts
