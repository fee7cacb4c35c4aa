// Ranks as threads of one process: messages meet in mailboxes (mailbox.hpp), collectives at a board
// (board.hpp). In a collective each rank shows the others where its tensors lie, and works there:
//
//     all_reduce       meet | rank r adds chunk r of all ranks, and writes it to all | barrier
//     reduce_scatter   meet | rank r adds chunk r of all ranks, into its part        | barrier
//     all_gather       meet | each rank copies all parts                             | barrier
//     broadcast        meet | each rank copies the root's                            | barrier
//
// Invariant: what one rank writes between meeting and barrier, no other rank reads or writes there.
// After the barrier nobody looks at another rank's memory, so that each may go on.
#include "common/comm/transport_threads.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <string_view>
#include <thread>

#include "common/comm/board.hpp"
#include "common/comm/mailbox.hpp"
#include "common/support/error.hpp"

namespace fivecuts {
namespace {

struct Group;

/// What a rank brings to a collective; each kind uses what it needs.
struct Given {
  Tensor whole = {}, part = {};
  std::vector<std::byte> bytes = {};
  int number = 0;  // of the group it is to be in
  std::shared_ptr<Group> group = {};
  std::weak_ptr<std::byte> segment = {};
};

class World;

/// What the ranks of a group share.
struct Group {
  Group(int ranks, std::shared_ptr<World> in)
      : mailboxes(static_cast<std::size_t>(ranks)), board(ranks), world(std::move(in)) {}
  void give_up() {
    for (Mailbox& mailbox : mailboxes) mailbox.give_up();
    board.give_up();
  }
  std::vector<Mailbox> mailboxes;
  Board<Given> board;
  std::shared_ptr<World> world;
};

/// All groups there are, for the end that nobody wanted: a rank has thrown, and those that wait for
/// it shall not wait on.
class World : public std::enable_shared_from_this<World> {
 public:
  std::shared_ptr<Group> new_group(int ranks) {
    auto group = std::make_shared<Group>(ranks, shared_from_this());
    const std::lock_guard lock(mutex_);
    if (given_up_) group->give_up();
    std::erase_if(groups_, [](const auto& one) { return one.expired(); });
    groups_.push_back(group);
    return group;
  }
  const std::atomic<bool>& given_up() const { return given_up_; }
  void give_up() {
    const std::lock_guard lock(mutex_);
    given_up_ = true;
    for (const auto& one : groups_) {
      if (const auto group = one.lock()) group->give_up();
    }
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> given_up_ = false;
  std::vector<std::weak_ptr<Group>> groups_;
};

/// The sum or maximum over the ranks of the elements in `part`. In the order of the ranks, so that
/// its bits do not depend on how many elements there are, or who asks. bf16 is reduced in float and
/// rounded once.
template <class T>
void reduce_as(const std::vector<Given>& all, Part part, Reduction reduction, T* out) {
  using Result = std::conditional_t<std::is_same_v<T, Bf16>, float, T>;
  constexpr std::int64_t block = 1024;  // elements at a time, so that these stay in the cache
  Result results[block];
  for (std::int64_t first = 0; first < part.count; first += block) {
    const std::int64_t count = std::min(block, part.count - first);
    const auto numbers_of = [&, at = part.first + first](const Given& one) {
      return one.whole.part(at, count).template as<T>();
    };
    std::ranges::copy(numbers_of(all[0]), results);
    for (std::size_t r = 1; r < all.size(); ++r) {
      const std::span<const T> next = numbers_of(all[r]);
      for (std::size_t i = 0; i < next.size(); ++i) {
        const Result number = next[i];
        results[i] =
            reduction == Reduction::sum ? results[i] + number : std::max(results[i], number);
      }
    }
    std::copy_n(results, count, out + first);
  }
}

void reduce(const std::vector<Given>& all, Part part, Reduction reduction, std::byte* out) {
  const DType type = all[0].whole.type();
  const auto nowhere = [](const Given& one) { return one.whole.data() == nullptr; };
  if (out == nullptr || std::ranges::any_of(all, nowhere)) return;
  switch (type) {
    case DType::f32:
      return reduce_as(all, part, reduction, reinterpret_cast<float*>(out));
    case DType::i64:
      return reduce_as(all, part, reduction, reinterpret_cast<std::int64_t*>(out));
    case DType::bf16:
      return reduce_as(all, part, reduction, reinterpret_cast<Bf16*>(out));
  }
}

class ThreadsTransport final : public Transport {
 public:
  ThreadsTransport(std::shared_ptr<Group> group, int rank)
      : group_(std::move(group)), rank_(rank) {}

  const char* name() const override { return "threads"; }
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(group_->mailboxes.size()); }
  int node(int) const override { return 0; }
  void give_up() override { group_->world->give_up(); }

  /// The first of the ranks that stay together makes their group and shows it to the others.
  std::unique_ptr<Transport> split(int number, const std::string&) override {
    int first = size(), before_me = 0, together = 0;
    const auto& numbers = meet({.number = number});
    for (int r = size() - 1; r >= 0; --r) {
      if (numbers[static_cast<std::size_t>(r)].number != number) continue;
      first = r;
      ++together;
      before_me += r < rank_ ? 1 : 0;
    }
    const auto& groups =
        meet({.group = first == rank_ ? group_->world->new_group(together) : nullptr});
    return std::make_unique<ThreadsTransport>(groups[static_cast<std::size_t>(first)].group,
                                              before_me);
  }

  std::unique_ptr<InFlight> start(std::span<const Transfer> transfers) override {
    auto posts = new_posts();
    for (const auto& [kind, peer, tensor] : transfers) {
      const auto bytes = static_cast<std::size_t>(tensor.bytes());
      if (kind == Transfer::Kind::send) {
        posts->send({rank_, peer, Channel::data}, tensor.data(), bytes, bytes <= eager_limit);
      } else {
        posts->receive({peer, rank_, Channel::data}, tensor.data(), bytes);
      }
    }
    return posts;
  }

  void all_reduce(Tensor t, Reduction reduction) override {
    const auto& all = meet_alike(t);
    const Part mine = part_of(t.count(), size(), rank_);
    const auto bytes = static_cast<std::size_t>(mine.count * size_of(t.type()));
    std::unique_ptr<std::byte[]> result;
    if (t.data() != nullptr) result = std::make_unique_for_overwrite<std::byte[]>(bytes);
    reduce(all, mine, reduction, result.get());
    for (const Given& one : all) {
      copy_bytes(one.whole.part(mine.first, mine.count).data(), result.get(), bytes);
    }
    group_->board.barrier();
  }

  void broadcast(Tensor t, int root) override {
    const auto& all = meet_alike(t);
    const std::byte* source = all.at(static_cast<std::size_t>(root)).whole.data();
    if (rank_ != root) copy_bytes(t.data(), source, static_cast<std::size_t>(t.bytes()));
    group_->board.barrier();
  }

  void all_gather(Tensor part, Tensor whole) override {
    check_part(part, whole);
    const auto& all = meet_alike(whole, part);
    for (int r = 0; r < size(); ++r) {
      const Part place = part_of(whole.count(), size(), r);
      const Tensor from = all[static_cast<std::size_t>(r)].part;
      const Tensor to = whole.part(place.first, place.count);
      if (from.data() == to.data()) continue;  // in place
      copy_bytes(to.data(), from.data(), static_cast<std::size_t>(to.bytes()));
    }
    group_->board.barrier();
  }

  void reduce_scatter(Tensor whole, Tensor part, Reduction reduction) override {
    check_part(part, whole);
    const auto& all = meet_alike(whole);
    reduce(all, part_of(whole.count(), size(), rank_), reduction, part.data());
    group_->board.barrier();
  }

  bool shares_memory() const override { return true; }

  std::shared_ptr<SharedMemory> share(std::size_t bytes) override {
    constexpr std::align_val_t alignment{4096};
    const std::size_t size = bytes + SharedMemory::header;
    const std::shared_ptr<std::byte> mine(
        static_cast<std::byte*>(::operator new(size, alignment)),
        [](std::byte* data) { ::operator delete (data, std::align_val_t{4096}); });
    std::memset(mine.get(), 0xFF, size);  // all-ones bytes are NaN
    struct All {
      std::shared_ptr<Group> group;
      std::vector<std::shared_ptr<std::byte>> segments;
    };
    auto all = std::make_shared<All>(All{group_, {}});
    std::vector<std::byte*> addresses;
    for (const Given& one : meet({.segment = mine})) {
      all->segments.push_back(one.segment.lock());
      require(all->segments.back() != nullptr, peer_gone);
      addresses.push_back(all->segments.back().get());
    }
    auto memory = std::make_shared<SharedMemory>(std::move(addresses), rank_, all,
                                                 &group_->world->given_up());
    group_->board.barrier();
    return memory;
  }

  std::unique_ptr<InFlight> start_send(std::span<const std::byte> bytes, int to,
                                       Plane plane) override {
    auto posts = new_posts();
    posts->send({rank_, to, channel(plane)}, bytes.data(), bytes.size(), true);
    return posts;
  }

  std::unique_ptr<InFlight> start_receive(std::span<std::byte> bytes, int from,
                                          Plane plane) override {
    auto posts = new_posts();
    posts->receive({from, rank_, channel(plane)}, bytes.data(), bytes.size());
    return posts;
  }

  std::vector<std::vector<std::byte>> all_gather_host(std::span<const std::byte> mine) override {
    std::vector<std::vector<std::byte>> result;
    result.reserve(static_cast<std::size_t>(size()));
    for (const Given& one : meet({.bytes = {mine.begin(), mine.end()}})) {
      result.push_back(one.bytes);
    }
    return result;
  }

 private:
  std::unique_ptr<Posts> new_posts() const {
    return std::make_unique<Posts>(
        std::shared_ptr<std::vector<Mailbox>>(group_, &group_->mailboxes));
  }
  static Channel channel(Plane plane) {
    return plane == Plane::envelope ? Channel::envelope : Channel::verdict;
  }

  const std::vector<Given>& meet(Given mine) { return group_->board.meet(rank_, std::move(mine)); }

  /// Fails on all ranks with the same sentence if their tensors differ.
  const std::vector<Given>& meet_alike(Tensor whole, Tensor part = {}) {
    const auto& all = meet({.whole = whole, .part = part});
    const Tensor& first = all[0].whole;
    for (std::size_t r = 1; r < all.size(); ++r) {
      const Tensor& other = all[r].whole;
      if (other.count() == first.count() && other.type() == first.type()) continue;
      fail(fmt::format("a collective over {} x {} on rank 0 and {} x {} on rank {}", first.count(),
                       name_of(first.type()), other.count(), name_of(other.type()), r));
    }
    return all;
  }

  void check_part(const Tensor& part, const Tensor& whole) const {
    require(part.count() == part_of(whole.count(), size(), rank_).count &&
                (part.empty() || part.type() == whole.type()),
            "a part of another size or type than its place in the whole");
  }

  std::shared_ptr<Group> group_;
  int rank_;
};

}  // namespace

namespace {

std::vector<std::unique_ptr<Transport>> ranks_of(const std::shared_ptr<World>& world, int ranks) {
  require(ranks >= 1, "a world has one rank at least");
  const auto group = world->new_group(ranks);
  std::vector<std::unique_ptr<Transport>> all;
  for (int r = 0; r < ranks; ++r) all.push_back(std::make_unique<ThreadsTransport>(group, r));
  return all;
}

/// Throws the lowest rank's exception again, but rather one that is not about another's.
void rethrow(const std::vector<std::exception_ptr>& thrown) {
  std::exception_ptr found;
  for (const std::exception_ptr& one : thrown) {
    if (!one) continue;
    if (!found) found = one;
    try {
      std::rethrow_exception(one);
    } catch (const std::exception& error) {
      if (std::string_view(error.what()).starts_with(peer_gone)) continue;
    } catch (...) {
    }
    found = one;
    break;
  }
  if (found) std::rethrow_exception(found);
}

}  // namespace

std::vector<std::unique_ptr<Transport>> threads_world(int ranks) {
  return ranks_of(std::make_shared<World>(), ranks);
}

void on_threads(int ranks, const std::function<void(std::unique_ptr<Transport>)>& rank) {
  const auto shared = std::make_shared<World>();
  auto world = ranks_of(shared, ranks);
  std::vector<std::exception_ptr> thrown(world.size());
  std::vector<std::thread> threads;
  enum { closed, open, given_up };
  std::atomic<int> gate = closed;  // no rank runs before all are there
  const auto finish = [&](int decision) {
    gate = decision;
    gate.notify_all();
    for (std::thread& thread : threads) thread.join();
  };
  try {
    threads.reserve(world.size());
    for (std::size_t r = 0; r < world.size(); ++r) {
      threads.emplace_back([&, r] {
        gate.wait(closed);
        if (gate == given_up) return;
        try {
          rank(std::move(world[r]));
        } catch (...) {
          thrown[r] = std::current_exception();
          shared->give_up();
        }
      });
    }
  } catch (const std::exception& error) {  // the system's, or no memory for the thread's record
    const std::size_t started = threads.size();
    finish(given_up);
    fail(
        fmt::format("this system gives a process no {} threads, it refused number {} ({}); ask for "
                    "fewer ranks, or raise its limits (ulimit -u, ulimit -v)",
                    ranks, started + 1, error.what()));
  }
  finish(open);
  rethrow(thrown);
}

}  // namespace fivecuts
