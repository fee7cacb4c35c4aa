#include "common/comm/transport_mpi.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

namespace fivecuts {
namespace {

void check(int code, const char* expression,
           std::source_location where = std::source_location::current()) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail(fmt::format("{} failed: {}", expression, text), where);
}
#define FIVECUTS_MPI(call) check(call, #call)

MPI_Datatype datatype(DType type) {
  if (type == DType::bf16) return MPI_UINT16_T;  // MPI has none; reduced by operations of our own
  return type == DType::f32 ? MPI_FLOAT : MPI_INT64_T;
}

/// A reduction of bf16, in the form in which MPI calls it. A sum is rounded each time two meet, so
/// it depends on MPI's order as those of floats do; in either order of the two it is the same.
template <Reduction reduction>
void reduce_bf16(void* from, void* into, int* count, MPI_Datatype*) {
  const auto* a = static_cast<const Bf16*>(from);
  auto* b = static_cast<Bf16*>(into);
  for (int i = 0; i < *count; ++i) {
    const float x = a[i], y = b[i];
    b[i] = reduction == Reduction::sum ? x + y : std::max(x, y);
  }
}

class Bf16Operation {
 public:
  explicit Bf16Operation(MPI_User_function* f) { FIVECUTS_MPI(MPI_Op_create(f, 1, &op_)); }
  Bf16Operation(const Bf16Operation&) = delete;
  ~Bf16Operation() { MPI_Op_free(&op_); }
  MPI_Op get() const { return op_; }

 private:
  MPI_Op op_ = MPI_OP_NULL;
};

int counted(std::int64_t count) {
  require(count <= INT32_MAX,
          "MPI takes at most 2^31 - 1 elements in one message; send it in parts");
  return static_cast<int>(count);
}

class Requests final : public InFlight {
 public:
  explicit Requests(std::vector<MPI_Request> requests) : requests_(std::move(requests)) {}
  void wait() override {
    FIVECUTS_MPI(
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE));
  }
  bool done() override {
    int flag = 0;
    FIVECUTS_MPI(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &flag,
                             MPI_STATUSES_IGNORE));
    return flag != 0;
  }

 private:
  std::vector<MPI_Request> requests_;
};

/// Data on one MPI communicator, everything else on a shadow of it: neither can match the other's.
class MpiTransport final : public Transport {
 public:
  explicit MpiTransport(MPI_Comm data) : data_(data) {
    FIVECUTS_MPI(MPI_Comm_set_errhandler(data_, MPI_ERRORS_RETURN));
    FIVECUTS_MPI(MPI_Comm_dup(data_, &shadow_));
    FIVECUTS_MPI(MPI_Comm_rank(data_, &rank_));
    FIVECUTS_MPI(MPI_Comm_size(data_, &size_));
    find_nodes();
  }
  ~MpiTransport() override {
    if (std::uncaught_exceptions() > 0) return;  // the run ends: nobody waits for the others now
    MPI_Comm_free(&shadow_);
    MPI_Comm_free(&data_);
  }

  const char* name() const override { return "mpi"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int node(int rank) const override { return nodes_.at(static_cast<std::size_t>(rank)); }

  std::unique_ptr<Transport> split(int group, const std::string&) override {
    MPI_Comm part = MPI_COMM_NULL;
    FIVECUTS_MPI(MPI_Comm_split(data_, group, rank_, &part));
    return std::make_unique<MpiTransport>(part);
  }

  std::unique_ptr<InFlight> start(std::span<const Transfer> transfers) override {
    std::vector<MPI_Request> requests;
    for (const auto& [kind, peer, tensor] : transfers) {
      MPI_Request& request = requests.emplace_back(MPI_REQUEST_NULL);
      const int count = counted(tensor.count());
      if (kind == Transfer::Kind::send) {
        FIVECUTS_MPI(
            MPI_Isend(tensor.data(), count, datatype(tensor.type()), peer, 0, data_, &request));
      } else {
        FIVECUTS_MPI(
            MPI_Irecv(tensor.data(), count, datatype(tensor.type()), peer, 0, data_, &request));
      }
    }
    return std::make_unique<Requests>(std::move(requests));
  }

  void all_reduce(Tensor t, Reduction reduction) override {
    FIVECUTS_MPI(MPI_Allreduce(MPI_IN_PLACE, t.data(), counted(t.count()), datatype(t.type()),
                               operation(reduction, t.type()), data_));
  }

  void broadcast(Tensor t, int root) override {
    FIVECUTS_MPI(MPI_Bcast(t.data(), counted(t.count()), datatype(t.type()), root, data_));
  }

  void all_gather(Tensor part, Tensor whole) override {
    const auto [counts, offsets] = parts_of(whole.count());
    const std::int64_t at = part_of(whole.count(), size_, rank_).first * size_of(whole.type());
    const bool in_place = !part.empty() && part.data() == whole.data() + at;
    const void* mine = in_place ? MPI_IN_PLACE : part.data();
    FIVECUTS_MPI(MPI_Allgatherv(mine, counted(part.count()), datatype(part.type()), whole.data(),
                                counts.data(), offsets.data(), datatype(whole.type()), data_));
  }

  void reduce_scatter(Tensor whole, Tensor part, Reduction reduction) override {
    const auto [counts, offsets] = parts_of(whole.count());
    FIVECUTS_MPI(MPI_Reduce_scatter(whole.data(), part.data(), counts.data(),
                                    datatype(whole.type()), operation(reduction, whole.type()),
                                    data_));
  }

  // Under a simulator a rank that polls would never let the others come.
  bool shares_memory() const override {
    return !mpi_is_simulated() && std::ranges::all_of(nodes_, [](int node) { return node == 0; });
  }

  std::shared_ptr<SharedMemory> share(std::size_t bytes) override {
    // Each rank's pages are its own, so that its core touches them first.
    MPI_Info apart = MPI_INFO_NULL;
    FIVECUTS_MPI(MPI_Info_create(&apart));
    FIVECUTS_MPI(MPI_Info_set(apart, "alloc_shared_noncontig", "true"));
    constexpr std::size_t alignment = 256;
    const std::size_t size = bytes + SharedMemory::header + alignment;
    void* mine = nullptr;
    MPI_Win window = MPI_WIN_NULL;
    FIVECUTS_MPI(MPI_Win_allocate_shared(static_cast<MPI_Aint>(size), 1, apart, data_,
                                         static_cast<void*>(&mine), &window));
    FIVECUTS_MPI(MPI_Info_free(&apart));
    const auto free = [window](void*) mutable {
      if (std::uncaught_exceptions() == 0) MPI_Win_free(&window);  // else nobody waits any more
    };
    const std::shared_ptr<void> owner(mine, free);
    std::memset(mine, 0xFF, size);  // no page is fresh afterwards; all-ones bytes are NaN
    std::vector<std::byte*> segments;
    for (int r = 0; r < size_; ++r) {
      MPI_Aint there = 0;
      int unit = 0;
      void* at = nullptr;
      FIVECUTS_MPI(MPI_Win_shared_query(window, r, &there, &unit, static_cast<void*>(&at)));
      std::size_t room = size;  // pages lie alike in every process, and so does what is aligned
      segments.push_back(
          static_cast<std::byte*>(std::align(alignment, size - alignment, at, room)));
    }
    auto memory = std::make_shared<SharedMemory>(std::move(segments), rank_, owner);
    FIVECUTS_MPI(MPI_Barrier(shadow_));
    return memory;
  }

  std::unique_ptr<InFlight> start_send(std::span<const std::byte> bytes, int to,
                                       Plane plane) override {
    MPI_Request request = MPI_REQUEST_NULL;
    FIVECUTS_MPI(MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to, tag(plane),
                           shadow_, &request));
    return std::make_unique<Requests>(std::vector{request});
  }

  std::unique_ptr<InFlight> start_receive(std::span<std::byte> bytes, int from,
                                          Plane plane) override {
    MPI_Request request = MPI_REQUEST_NULL;
    FIVECUTS_MPI(MPI_Irecv(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, from, tag(plane),
                           shadow_, &request));
    return std::make_unique<Requests>(std::vector{request});
  }

  std::vector<std::vector<std::byte>> all_gather_host(std::span<const std::byte> mine) override {
    const auto n = static_cast<std::size_t>(size_);
    const int count = counted(static_cast<std::int64_t>(mine.size()));
    std::vector<int> counts(n), offsets(n);
    FIVECUTS_MPI(MPI_Allgather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, shadow_));
    std::int64_t total = 0;
    for (std::size_t r = 0; r < n; ++r) {
      offsets[r] = counted(total);
      total += counts[r];
    }
    std::vector<std::byte> all(static_cast<std::size_t>(counted(total)));
    FIVECUTS_MPI(MPI_Allgatherv(mine.data(), count, MPI_BYTE, all.data(), counts.data(),
                                offsets.data(), MPI_BYTE, shadow_));
    std::vector<std::vector<std::byte>> result;
    for (std::size_t r = 0; r < n; ++r) {
      const auto first = all.begin() + offsets[r];
      result.emplace_back(first, first + counts[r]);
    }
    return result;
  }

 private:
  static int tag(Plane plane) { return static_cast<int>(plane); }

  MPI_Op operation(Reduction reduction, DType type) const {
    const bool sum = reduction == Reduction::sum;
    if (type == DType::bf16) return (sum ? bf16_sum_ : bf16_max_).get();
    return sum ? MPI_SUM : MPI_MAX;
  }

  std::pair<std::vector<int>, std::vector<int>> parts_of(std::int64_t count) const {
    std::vector<int> counts, offsets;
    for (int r = 0; r < size_; ++r) {
      const Part part = part_of(count, size_, r);
      counts.push_back(counted(part.count));
      offsets.push_back(counted(part.first));
    }
    return {counts, offsets};
  }

  void find_nodes() {
    char host[MPI_MAX_PROCESSOR_NAME] = {};
    int length = 0;
    FIVECUTS_MPI(MPI_Get_processor_name(host, &length));
    const auto bytes = std::as_bytes(std::span(host, static_cast<std::size_t>(length)));
    const auto hosts = all_gather_host(bytes);
    for (const auto& name : hosts) {
      int first = 0;
      while (hosts[static_cast<std::size_t>(first)] != name) ++first;
      nodes_.push_back(first);
    }
  }

  const Bf16Operation bf16_sum_{reduce_bf16<Reduction::sum>},
      bf16_max_{reduce_bf16<Reduction::max>};
  MPI_Comm data_ = MPI_COMM_NULL, shadow_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  std::vector<int> nodes_;
};

}  // namespace

MpiSession::MpiSession(int& argc, char**& argv) {
#ifdef __SANITIZE_ADDRESS__
  // What MPI takes here it keeps to the end, partly in plugins that it drops at once.
  const __lsan::ScopedDisabler not_our_leaks;
#endif
  int provided = 0;
  FIVECUTS_MPI(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
  if (provided < MPI_THREAD_MULTIPLE && !mpi_is_simulated()) {
    std::fprintf(stderr, "this MPI was built without MPI_THREAD_MULTIPLE, which async() needs\n");
    abort_all_ranks(exit_failed);
  }
}

MpiSession::~MpiSession() {
#ifdef __SANITIZE_ADDRESS__
  // MPI unloads its plugins at its end, and what they keep could then no longer be told from our
  // leaks. So the check at the end of the process is made here, and not again.
  __lsan_do_leak_check();
#endif
  MPI_Finalize();
}

std::unique_ptr<Transport> MpiSession::world() {
  MPI_Comm all = MPI_COMM_NULL;
  FIVECUTS_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &all));
  return std::make_unique<MpiTransport>(all);
}

double mpi_seconds() { return MPI_Wtime(); }

bool mpi_is_simulated() {
#ifdef SMPI_H
  return true;
#else
  return false;
#endif
}

#ifdef OMPI_MAJOR_VERSION
void allow_forced_mpi_all_reduce() { setenv("OMPI_MCA_coll_tuned_use_dynamic_rules", "1", 0); }

bool force_mpi_all_reduce(int algorithm) {
  int provided = 0, index = 0, count = 0;
  if (MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS) return false;
  MPI_T_cvar_handle variable = MPI_T_CVAR_HANDLE_NULL;
  const bool set = MPI_T_cvar_get_index("coll_tuned_allreduce_algorithm", &index) == MPI_SUCCESS &&
                   MPI_T_cvar_handle_alloc(index, nullptr, &variable, &count) == MPI_SUCCESS &&
                   MPI_T_cvar_write(variable, &algorithm) == MPI_SUCCESS;
  MPI_T_finalize();
  return set;
}
#else
void allow_forced_mpi_all_reduce() {}
bool force_mpi_all_reduce(int algorithm) { return algorithm == 0; }
#endif

void abort_all_ranks(int status) {
  std::fflush(nullptr);
  int started = 0, ended = 0;
  MPI_Initialized(&started);
  MPI_Finalized(&ended);
  if (started != 0 && ended == 0) MPI_Abort(MPI_COMM_WORLD, status);
  std::_Exit(status);
}

}  // namespace fivecuts
