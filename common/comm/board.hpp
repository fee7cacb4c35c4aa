#pragma once
// Where the threads of a group meet for a collective. A board has two sides:
//
//     given   a0  a1  --  a3      each rank writes its own place when it comes to round k
//     shown   a0  a1  a2  a3      the last to come turns the board; then all read
//
// Invariant: the board turns when all ranks have come, so what a rank was shown in round k stays
// until that rank itself comes to round k + 1. One barrier a round, and no lock.
#include <atomic>
#include <utility>
#include <vector>

#include "common/comm/mailbox.hpp"
#include "common/support/error.hpp"

namespace fivecuts {

template <class T>
class Board {
 public:
  explicit Board(int ranks)
      : ranks_(ranks),
        missing_(ranks),
        given_(static_cast<std::size_t>(ranks)),
        shown_(static_cast<std::size_t>(ranks)) {}

  /// What all ranks have given, by rank: for this one to look at until it comes again.
  const std::vector<T>& meet(int rank, T mine) {
    given_[static_cast<std::size_t>(rank)] = std::move(mine);
    come([this] { std::swap(given_, shown_); });
    return shown_;
  }

  /// All ranks have come; what is shown stays.
  void barrier() {
    come([] {});
  }

  /// From now on, meeting here fails, also for those who wait already.
  void give_up() {
    given_up_ = true;
    ++round_;
    round_.notify_all();
  }

 private:
  /// The last to come does `last` before anybody goes on.
  template <class F>
  void come(const F& last) {
    const unsigned round = round_;
    require(!given_up_, peer_gone);
    if (--missing_ > 0) {
      round_.wait(round);
      require(completed_ > round, peer_gone);
      return;
    }
    last();
    missing_ = ranks_;
    completed_ = round + 1;
    ++round_;
    round_.notify_all();
  }

  const int ranks_;
  std::atomic<int> missing_;
  std::atomic<unsigned> round_ = 0;
  std::atomic<unsigned> completed_ = 0;  // rounds that all have come to; give_up() ends one early
  std::atomic<bool> given_up_ = false;
  std::vector<T> given_, shown_;
};

}  // namespace fivecuts
