#pragma once
// What saving, resuming and exporting have in common: ranks that agree on whether it went well.
#include <cstring>

#include "common/comm/communicator.hpp"
#include "common/compute/operations.hpp"

namespace fivecuts::zero_redundancy {

/// Collective. Every rank does its work(), however long its disk takes, and all have what each
/// returned. If one throws, all throw the same.
template <class F>
std::vector<std::string> all_or_none(const Communicator& comm, const F& work) {
  std::vector<std::string> all = comm.on_all_ranks([&] {
    try {
      return "+" + work();
    } catch (const UsageError& error) {
      return std::string("?") + error.what();
    } catch (const std::exception& error) {
      return std::string("-") + error.what();
    }
  });
  for (std::string& text : all) {
    const char verdict = text.front();
    text.erase(0, 1);
    if (verdict == '?') throw UsageError(text);
    if (verdict == '-') fail(text);
  }
  return all;
}
/// The same where only rank 0 has work. What it returned.
template <class F>
std::string by_rank_0(const Communicator& comm, const F& work) {
  return all_or_none(comm, [&] { return comm.rank() == 0 ? work() : std::string(); }).front();
}

template <class T>
std::string packed(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}
template <class T>
std::vector<T> unpacked(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// A tensor's numbers in host memory: where they lie, or a copy of what a GPU has.
class HostView {
 public:
  explicit HostView(Tensor tensor) {
    if (tensor.empty()) return;
    if (!tensor.device()->on_host()) copy_ = copy_out(tensor);
    values_ = tensor.device()->on_host() ? std::span<const float>(tensor.as<float>()) : copy_;
  }
  std::span<const float> values() const { return values_; }
  std::span<const std::byte> bytes() const { return std::as_bytes(values_); }

 private:
  std::vector<float> copy_;
  std::span<const float> values_;
};

}  // namespace fivecuts::zero_redundancy
