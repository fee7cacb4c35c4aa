#include "common/comm/agreement.hpp"

#include <algorithm>
#include <mutex>
#include <thread>

#include "common/support/error.hpp"

namespace fivecuts {
namespace {

struct Verdict {
  std::int32_t odd_rank = -1;  // the first rank found to differ from rank 0; -1: none
  double latest = 0;           // of all time stamps
  Envelope first, odd;
};

template <class T>
std::span<std::byte> bytes_of(T& object) {
  return std::as_writable_bytes(std::span(&object, 1));
}

std::string list_of(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t k = 0; k < ranks.size(); ++k)
    text += (k == 0 ? "" : ", ") + std::to_string(ranks[k]);
  return text;
}

/// What rank 0 receives and answers, in one place that can outlive the call.
struct Round {
  explicit Round(std::size_t ranks) : theirs(ranks), arriving(ranks) {}
  std::vector<Envelope> theirs;
  std::vector<std::unique_ptr<InFlight>> arriving, answers;
  Verdict verdict;
};

/// Rank 0: takes the others' envelopes in whatever order they come, until one differs.
void collect(Round& round, const Envelope& mine, std::vector<int> missing, const std::string& name,
             Guard::Watch& watch) {
  while (!missing.empty() && round.verdict.odd_rank < 0) {
    const std::size_t before = missing.size();
    std::erase_if(missing, [&](int r) {
      const auto at = static_cast<std::size_t>(r);
      if (!round.arriving[at]->done()) return false;
      round.verdict.latest = std::max(round.verdict.latest, round.theirs[at].time);
      if (round.verdict.odd_rank < 0 && !same_collective(mine, round.theirs[at])) {
        round.verdict = {r, 0, mine, round.theirs[at]};
      }
      return true;
    });
    if (missing.size() == before) {
      std::this_thread::yield();
    } else if (!missing.empty()) {
      watch.now(fmt::format("{} at {} on '{}'", list_of(missing), describe(mine), name));
    }
  }
}

void keep(std::unique_ptr<Round> round) {
  static std::mutex mutex;
  static auto* kept = new std::vector<std::unique_ptr<Round>>;  // for ever, and no leak
  const std::lock_guard lock(mutex);
  kept->push_back(std::move(round));
}

Verdict judge(Transport& transport, const Envelope& mine, const std::string& name,
              Guard::Watch& watch) {
  const int n = transport.size();
  auto round = std::make_unique<Round>(static_cast<std::size_t>(n));
  std::vector<int> missing;
  round->verdict.latest = mine.time;
  for (int r = 1; r < n; ++r) {
    const auto at = static_cast<std::size_t>(r);
    round->arriving[at] =
        transport.start_receive(bytes_of(round->theirs[at]), r, Transport::Plane::envelope);
    missing.push_back(r);
  }
  collect(*round, mine, std::move(missing), name, watch);
  for (int r = 1; r < n; ++r) {
    round->answers.push_back(
        transport.start_send(bytes_of(round->verdict), r, Transport::Plane::verdict));
  }
  const Verdict verdict = round->verdict;
  if (verdict.odd_rank < 0) {
    for (const auto& answer : round->answers) answer->wait();
  } else {
    // Some rank may never send its envelope or take its answer. The run ends with an exception;
    // until then the library may still write here.
    keep(std::move(round));
  }
  return verdict;
}

Verdict ask(Transport& transport, Envelope mine) {
  Verdict verdict;
  const auto announced = transport.start_send(bytes_of(mine), 0, Transport::Plane::envelope);
  const auto answered = transport.start_receive(bytes_of(verdict), 0, Transport::Plane::verdict);
  announced->wait();
  answered->wait();
  return verdict;
}

}  // namespace

double agree(Transport& transport, Guard& guard, const std::string& name, const Envelope& mine) {
  auto watch =
      guard.watch([&] { return fmt::format("the others at {} on '{}'", describe(mine), name); });
  const Verdict verdict =
      transport.rank() == 0 ? judge(transport, mine, name, watch) : ask(transport, mine);
  if (verdict.odd_rank < 0) return verdict.latest;
  throw GuardError(fmt::format("the ranks of '{}' disagree: rank 0 came to {}, rank {} to {}", name,
                               describe(verdict.first), verdict.odd_rank, describe(verdict.odd)),
                   transport.rank() != 0);
}

}  // namespace fivecuts
