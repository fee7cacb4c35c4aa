#include "common/observe/traffic_ledger.hpp"

namespace fivecuts {

Traffic& Traffic::operator+=(const Traffic& other) {
  sent += other.sent;
  received += other.received;
  sent_inter_node += other.sent_inter_node;
  messages += other.messages;
  return *this;
}

Traffic Traffic::operator-(const Traffic& other) const {
  return {sent - other.sent, received - other.received, sent_inter_node - other.sent_inter_node,
          messages - other.messages};
}

void TrafficLedger::add(const Key& key, const Traffic& traffic) {
  const std::lock_guard lock(mutex_);
  rows_[key] += traffic;
}

Traffic TrafficLedger::sum(const std::string& communicator, bool modelled) const {
  const std::lock_guard lock(mutex_);
  Traffic total;
  for (const auto& [key, traffic] : rows_) {
    if (key.modelled == modelled && (communicator.empty() || key.communicator == communicator)) {
      total += traffic;
    }
  }
  return total;
}

Traffic TrafficLedger::measured(const std::string& communicator) const {
  return sum(communicator, false);
}
Traffic TrafficLedger::modelled(const std::string& communicator) const {
  return sum(communicator, true);
}

std::map<TrafficLedger::Key, Traffic> TrafficLedger::rows() const {
  const std::lock_guard lock(mutex_);
  return rows_;
}

void TrafficLedger::reset() {
  const std::lock_guard lock(mutex_);
  rows_.clear();
}

}  // namespace fivecuts
