#include <optional>

#include "ch07_zero/checkpoint.hpp"
#include "ch07_zero/ranks_and_files.hpp"
#include "ch07_zero/safe_file.hpp"
#include "ch07_zero/safetensors.hpp"

namespace fivecuts::zero_redundancy {
namespace {

std::string export_header(const Trainer& trainer) {
  std::vector<TensorInfo> tensors;
  for (std::size_t k = 0; k < trainer.layers().size(); ++k) {
    const LayerShape& shape = trainer.layers()[k].shape;
    tensors.push_back({fmt::format("layers.{}.weight", k), {shape.in, shape.out}});
    if (shape.bias) tensors.push_back({fmt::format("layers.{}.bias", k), {shape.out}});
  }
  return safetensors_header(tensors, {{"layout", "y = x W + b, with W [in, out]"}});
}

/// Collective. The bucket of layer k, W and then b, is what stands in the file.
void export_layer(const Trainer& trainer, std::size_t k, Communicator& comm,
                  const std::function<void(std::span<const std::byte>)>& write) {
  const std::int64_t all = trainer.layers()[k].shape.parameters();
  const Tensor mine = trainer.master_shard(k);
  for (int r = 0; r < comm.size(); ++r) {
    const std::int64_t count = part_of(all, comm.size(), r).count;
    if (count == 0) continue;
    if (comm.rank() == r && r > 0) comm.send(0, mine);
    if (comm.rank() > 0) continue;
    Buffer theirs;
    if (r > 0) {
      theirs =
          Buffer(*trainer.layers()[k].parameters.tensor().device(), Category::workspace, 1, count);
      comm.receive(r, theirs);
    }
    write(HostView(r > 0 ? theirs.tensor() : mine).bytes());
  }
}

}  // namespace

std::int64_t export_weights(const Trainer& trainer, Communicator& comm,
                            const std::filesystem::path& file) {
  std::optional<SafeFile> out;
  by_rank_0(comm, [&] {
    const std::string header = export_header(trainer);
    out.emplace(file).write(std::as_bytes(std::span(header)));
    return std::string();
  });
  std::int64_t bytes = 0;
  for (std::size_t k = 0; k < trainer.layers().size(); ++k) {
    std::exception_ptr full;  // the others send to the end of the layer, so rank 0 takes it
    export_layer(trainer, k, comm, [&](std::span<const std::byte> shard) {
      try {
        if (!full) out->write(shard);
      } catch (const FileError&) {
        full = std::current_exception();
      }
    });
    by_rank_0(comm, [&] {
      if (full) std::rethrow_exception(full);
      return std::string();
    });
  }
  by_rank_0(comm, [&] {
    out->commit();
    bytes = out->bytes();
    return std::string();
  });
  return comm.gather(bytes).front();
}

}  // namespace fivecuts::zero_redundancy
