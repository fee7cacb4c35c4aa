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

 private:
  /// The last to come does `last` before anybody goes on.
  template <class F>
  void come(const F& last) {
    const unsigned round = round_;
    if (--missing_ > 0) {
      round_.wait(round);
      return;
    }
    last();
    missing_ = ranks_;
    ++round_;
    round_.notify_all();
  }

  const int ranks_;
  std::atomic<int> missing_;
  std::atomic<unsigned> round_ = 0;
  std::vector<T> given_, shown_;
};

}  // namespace fivecuts
