#pragma once
// What transports of GPU memory have in common: all that is not data goes over a transport of host
// memory, which they own.
#include <memory>
#include <string>
#include <vector>

#include "common/comm/transport.hpp"

namespace fivecuts {

class TransportOverHost : public Transport {
 public:
  explicit TransportOverHost(std::unique_ptr<Transport> host) : host_(std::move(host)) {}

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  int node(int rank) const override { return host_->node(rank); }
  Transport& host() override { return *host_; }
  void give_up() override { host_->give_up(); }
  std::unique_ptr<InFlight> start_send(std::span<const std::byte> bytes, int to,
                                       Plane plane) override {
    return host_->start_send(bytes, to, plane);
  }
  std::unique_ptr<InFlight> start_receive(std::span<std::byte> bytes, int from,
                                          Plane plane) override {
    return host_->start_receive(bytes, from, plane);
  }
  std::vector<std::vector<std::byte>> all_gather_host(std::span<const std::byte> mine) override {
    return host_->all_gather_host(mine);
  }

 protected:
  std::unique_ptr<Transport> host_;
};

}  // namespace fivecuts
