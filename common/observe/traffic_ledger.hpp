#pragma once
// Bytes on the wire of one rank, counted where a message leaves it or arrives.
#include <compare>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace fivecuts {

struct Traffic {
  std::int64_t sent = 0, received = 0;  ///< bytes, one direction each
  std::int64_t sent_inter_node = 0;     ///< the part of `sent` that leaves the node
  std::int64_t messages = 0;            ///< messages sent

  Traffic& operator+=(const Traffic& other);
  Traffic operator-(const Traffic& other) const;
  bool operator==(const Traffic&) const = default;
};

/// One rank's account, per communicator name ("dp", "tp", ...) and operation. A library collective
/// hides its messages: it is charged as a ring and kept apart as `modelled`, never mixed with what
/// was measured.
class TrafficLedger {
 public:
  struct Key {
    std::string communicator, operation;
    bool modelled = false;
    auto operator<=>(const Key&) const = default;
  };

  void add(const Key& key, const Traffic& traffic);

  Traffic measured(const std::string& communicator = "") const;  ///< "": all communicators
  Traffic modelled(const std::string& communicator = "") const;
  std::map<Key, Traffic> rows() const;
  void reset();

 private:
  Traffic sum(const std::string& communicator, bool modelled) const;
  mutable std::mutex mutex_;
  std::map<Key, Traffic> rows_;
};

}  // namespace fivecuts
