// Each claim of the notes whose home is this chapter: the formula at the run's own parameters
// against what a ledger, a counter or a comparison says.
#include <cmath>
#include <cstring>
#include <set>

#include "ch02_data_parallel/timing.hpp"

namespace fivecuts::data_parallel {
namespace {

struct Scene {
  Context& context;
  Communicator& comm;
  const Digits& digits;
  const TrainingOptions& options;
  const AllReduce& all_reduce;
  const TrainingResult& trained;
  ClaimRows& rows;

  std::uint64_t seed() const { return static_cast<std::uint64_t>(options.seed); }
  Replica replica() const { return {context.device, model_of(options), seed(), options.precision}; }
  std::vector<std::int64_t> batch() const {
    return batches_of(digits.train.count(), options.batch, seed(), 0).front();
  }
  Shard shard(Communicator& over) const {
    return std::move(
        load_shards(context.device, digits.train, batch(), over, 1, options.precision).front());
  }
  double bytes() const { return static_cast<double>(size_of(options.precision)); }  // of a number
  double parameters() const { return static_cast<double>(parameter_count(model_of(options))); }
};

double sum_over_ranks(const Communicator& comm, double mine) {
  double sum = 0;
  for (const double of_rank : comm.gather(mine)) sum += of_rank;
  return sum;
}

/// Elements of `t` whose bits are not the same on all ranks.
std::int64_t differing_elements(Tensor t, const Communicator& comm) {
  const std::vector<float> mine = copy_out(t);
  constexpr std::size_t size = sizeof(float);
  const auto bits =
      comm.gather_text({reinterpret_cast<const char*>(mine.data()), mine.size() * size});
  std::int64_t differ = 0;
  for (std::size_t at = 0; at < bits.front().size(); at += size) {
    bool same = true;
    for (const std::string& other : bits)
      same = same && std::memcmp(&other[at], &bits[0][at], size) == 0;
    differ += same ? 0 : 1;
  }
  return differ;
}

// N copies of the model are stored.
void copies(const Scene& s) {
  const Replica replica = s.replica();
  const auto mine = static_cast<double>(s.context.memory.live(Category::parameter)) / s.bytes();
  s.rows.equal("C01.10", s.comm.size() * s.parameters(), sum_over_ranks(s.comm, mine),
               "elements stored",
               fmt::format("{} ranks x {} parameters", s.comm.size(), s.parameters()));
}

// Model state per card, with 1, 2, 3, 4, 8, ... N ranks at work: it does not fall.
void model_state(const Scene& s) {
  std::string seen;
  double least = 1e300, most = 0;
  std::set<int> sizes = {s.comm.size()};
  for (int n = 1; n < s.comm.size(); n = n < 4 ? n + 1 : 2 * n) sizes.insert(n);
  for (const int n : sizes) {
    Communicator group =
        s.comm.split("dp of " + std::to_string(n), [n](int r) { return r < n ? 0 : 1; });
    double bytes = 0;
    if (s.comm.rank() < n) {
      Replica replica = s.replica();
      training_step(replica, s.shard(group), group, per_layer, s.all_reduce, adam_of(s.options));
      bytes = static_cast<double>(s.context.memory.model_state());
    }
    for (const double of_rank : s.comm.gather(bytes)) {
      if (of_rank > 0) least = std::min(least, of_rank);
      most = std::max(most, of_rank);
    }
    seen += fmt::format("{}N={}: {:.0f} B", n == 1 ? "" : ", ", n, most);
  }
  s.rows.equal("C02.1", 16 * s.parameters(), most, "B of model state on each rank", seen,
               least == most);
}

// What synchronising adds to a rank's memory: nothing in place, a copy of the gradients with a
// separate bucket.
void bucket_memory(const Scene& s) {
  const auto extra = [&](Rung rung) {
    Replica replica = s.replica();
    const Shard shard = s.shard(s.comm);
    add_local_gradients(replica, shard);
    s.context.memory.reset_peak();
    const std::int64_t before = s.context.memory.live();
    rung(replica, {shard.rows(), shard.global_rows}, s.comm, s.all_reduce);
    return static_cast<double>(s.context.memory.peak() - before);
  };
  const double in_place = extra(per_layer);
  s.rows.equal("C02.2", s.bytes() * s.parameters(), extra(copied_bucket),
               "B more with a copied bucket",
               fmt::format("{} B more in place ({}: a gradient is {} bytes)", in_place,
                           name_of_precision(s.options.precision), s.bytes()),
               in_place == 0);
}

// Leaving out any of the three phases changes the weights.
void phases(const Scene& s) {
  if (s.comm.size() == 1)
    return s.rows.not_here("C02.3", "with one rank there is nothing to average; use -n 2");
  const auto weights_without = [&](int left_out) {
    Replica replica = s.replica();
    const Shard shard = s.shard(s.comm);
    for (int step = 0; step < 2; ++step) {
      zero_gradients(replica);
      if (left_out != 1) add_local_gradients(replica, shard);
      if (left_out != 2)
        per_layer(replica, {shard.rows(), shard.global_rows}, s.comm, s.all_reduce);
      if (left_out != 3) update(replica, shard.global_rows, adam_of(s.options));
    }
    return hash(replica);
  };
  const std::uint64_t whole = weights_without(0);
  int needed = 0;
  for (const int phase : {1, 2, 3})
    needed += s.comm.all_true(weights_without(phase) != whole) ? 1 : 0;
  s.rows.equal("C02.3", 3, needed, "phases that the weights depend on", "each left out in turn");
}

// The reduced gradient is the same on every rank, unless each adds in its own order.
void same_gradient(const Scene& s) {
  const auto differing = [&](Rung rung) {
    Replica replica = s.replica();
    const Shard shard = s.shard(s.comm);
    add_local_gradients(replica, shard);
    rung(replica, {shard.rows(), shard.global_rows}, s.comm, s.all_reduce);
    std::int64_t differ = 0;
    for (const Tensor gradient : replica.gradients) differ += differing_elements(gradient, s.comm);
    return differ;
  };
  const std::int64_t root = differing(gather_broadcast), reduced = differing(per_layer),
                     own = differing(own_order);
  // Two numbers add up to the same in either order, so it takes three ranks to see a difference.
  const bool own_as_expected = s.comm.size() < 3 ? own == 0 : own > 0;
  s.rows.holds(
      "C02.4", root == 0 && reduced == 0 && own_as_expected,
      fmt::format(
          "of {} elements differ between ranks: {} through the root, {} by all-reduce, {} added in "
          "own order{}",
          s.parameters(), root, reduced, own, s.comm.size() < 3 ? " (it takes 3 ranks)" : ""));
}

// One sample with gradient 1, three with gradient 5, on two ranks.
void mean_of_means(const Scene& s) {
  if (s.comm.size() == 1) return s.rows.not_here("C02.5", "it takes two ranks; use -n 2");
  Communicator pair = s.comm.split("pair", [](int r) { return r / 2; });
  const bool first = s.comm.rank() % 2 == 0;
  const float count = first ? 1 : 3, gradient = first ? 1 : 5;
  const Buffer sums(s.context.device, Category::workspace, 1, 3);
  copy_in(std::vector<float>{count, count * gradient, gradient}, sums);
  s.all_reduce(pair, sums);
  const auto total = copy_out(sums);
  const double right = s.comm.gather(total[1] / total[0]).front();
  const double means = s.comm.gather(total[2] / 2).front();
  s.rows.equal("C02.5", 4.0, right, "by counts",
               fmt::format("the mean of the two means is {}", means), means == 3);
}

void replicas_stay_equal(const Scene& s) {
  Replica drifting = s.replica();
  const Shard shard = s.shard(s.comm);
  const int steps = 20;
  for (int k = 0; k < steps; ++k) {
    training_step(drifting, shard, s.comm, own_order, s.all_reduce, adam_of(s.options));
  }
  const int replicas = distinct_replicas(drifting, s.comm);
  s.rows.equal(
      "C02.6", static_cast<double>(s.trained.steps),
      static_cast<double>(s.trained.steps_with_equal_replicas), "steps with equal replicas",
      fmt::format("sums in own order: {} different replicas after {} steps", replicas, steps),
      s.comm.size() < 3 ? replicas == 1 : replicas > 1);
}

/// The notes' scalar, small enough to follow by hand: f = (w - x)^2 / 2 with x = 1, 2, 3 on the
/// first three ranks, w = 0, learning rate 1/2.
double scalar_step(const Scene& s, Communicator& group, double w, double x, bool synchronised) {
  const Buffer gradient(s.context.device, Category::workspace, 1, 1);
  copy_in(std::vector<float>{static_cast<float>(w - x)}, gradient);
  if (synchronised) s.all_reduce(group, gradient);
  const double samples = synchronised ? group.size() : 1;
  return w - 0.5 * static_cast<double>(copy_out(gradient)[0]) / samples;
}

void no_synchronisation(const Scene& s, Communicator& three) {
  Replica replica = s.replica();
  training_step(replica, s.shard(s.comm), s.comm, none, s.all_reduce, adam_of(s.options));
  std::string scalars;
  bool halves = true;
  int x = s.comm.rank() - three.rank();
  for (const double w : three.gather(scalar_step(s, three, 0, s.comm.rank() + 1, false))) {
    halves = halves && w == 0.5 * ++x;
    scalars += fmt::format("{}{}", scalars.empty() ? "" : ", ", w);
  }
  s.rows.equal("C02.7", s.comm.size(), distinct_replicas(replica, s.comm),
               "different replicas after one step", "the notes' scalar: " + scalars, halves);
}

void one_update(const Scene& s, Communicator& three) {
  const double together = scalar_step(s, three, 0, s.comm.rank() + 1, true);
  double in_turn = 0;
  for (int x = 1; x <= three.size(); ++x) in_turn = scalar_step(s, three, in_turn, x, false);
  // Rank 0's numbers: a group of fewer than three, at the end of the world, has others.
  const int n = s.comm.gather(three.size()).front();
  const double turns = s.comm.gather(in_turn).front();
  s.rows.equal("C02.14", (n + 1) / 4.0, s.comm.gather(together).front(), "after one step together",
               fmt::format("{} after {} steps in turn", turns, n), turns == n - 1 + std::exp2(-n));
}

// Elements that enter the all-reduce in one optimizer step.
void elements_reduced(const Scene& s) {
  std::int64_t entered = 0, calls = 0;
  const AllReduce counted = [&](Communicator& c, Tensor t) {
    entered += t.count();
    ++calls;
    s.all_reduce(c, t);
  };
  std::string seen;
  bool same = true;
  const auto account = [&](const std::string& what) {
    same = same && static_cast<double>(entered) == s.parameters();
    seen += fmt::format("{}{} in {} calls {}", seen.empty() ? "" : ", ", entered, calls, what);
    entered = calls = 0;
  };
  Replica replica = s.replica();
  for (const auto& [name, rung] : {NamedRung{"per tensor", per_tensor},
                                   {"per layer", per_layer},
                                   {"as one bucket", copied_bucket}}) {
    training_step(replica, s.shard(s.comm), s.comm, rung, counted, adam_of(s.options));
    account(name);
  }
  const auto four =
      load_shards(s.context.device, s.digits.train, s.batch(), s.comm, 4, s.options.precision);
  accumulated_step(replica, four, s.comm, per_layer, counted, adam_of(s.options));
  account("with 4 micro-batches");
  s.rows.holds("C02.8", same, seen + fmt::format(" (expected {} each)", s.parameters()));
}

// Each rank computes on rows that no other rank has: N mini-batches a step. Looked at are the
// pixels and the label that lie in its memory.
void mini_batches(const Scene& s) {
  const Shard shard = s.shard(s.comm);
  const std::vector<std::int64_t> labels = copy_out_i64(shard.labels);
  std::string mine;
  for (std::int64_t r = 0; r < shard.rows(); ++r) {
    const std::uint64_t row =
        hash(shard.x.tensor().part(r * Samples::pixels, Samples::pixels)) +
        static_cast<std::uint64_t>(labels[static_cast<std::size_t>(r)]);
    mine.append(reinterpret_cast<const char*>(&row), sizeof row);
  }
  std::set<std::string> seen;
  int disjoint = 0;
  for (const std::string& of_rank : s.comm.gather_text(mine)) {
    bool fresh = !of_rank.empty();
    for (std::size_t at = 0; at < of_rank.size(); at += sizeof(std::uint64_t)) {
      fresh = seen.insert(of_rank.substr(at, sizeof(std::uint64_t))).second && fresh;
    }
    disjoint += fresh ? 1 : 0;
  }
  const auto batch = s.batch().size();
  s.rows.equal("C02.12", s.comm.size(), disjoint, "mini-batches a step",
               fmt::format("{} different rows in a batch of {}", seen.size(), batch),
               seen.size() == batch);
}

// Three batches in the time of one? At the notes' own N, with computing 1 and D/B = 0.1.
void time_of_one_batch(const Scene& s) {
  NotesTimes times;
  if (s.comm.rank() == 0) times = notes_times(s.all_reduce);
  times = s.comm.gather(times).front();
  s.rows.equal(
      "C02.13", 1 + 2 * (3 - 1) / 3.0 * 0.1, times.together / times.alone,
      "batch-times a step of three ranks",
      fmt::format("{:.4g} with overlap; its ring is modelled", times.overlapped / times.alone),
      times.overlapped < times.together && times.overlapped > times.alone);
}

}  // namespace

void measure_claims(Context& context, Communicator& comm, const Digits& digits,
                    const TrainingOptions& options, const AllReduce& all_reduce,
                    const TrainingResult& trained, ClaimRows& rows) {
  const Scene scene{context, comm, digits, options, all_reduce, trained, rows};
  copies(scene);
  model_state(scene);
  bucket_memory(scene);
  elements_reduced(scene);
  time_of_one_batch(scene);
  if (context.device.dry()) {
    for (const char* id : {"C02.3", "C02.4", "C02.5", "C02.6", "C02.7", "C02.12", "C02.14"}) {
      rows.not_here(id, "a dry device has no numbers to compare; use --device cpu");
    }
    return;
  }
  Communicator three = comm.split("three", [](int r) { return r / 3; });
  phases(scene);
  same_gradient(scene);
  mean_of_means(scene);
  replicas_stay_equal(scene);
  no_synchronisation(scene, three);
  mini_batches(scene);
  one_update(scene, three);
}

}  // namespace fivecuts::data_parallel
