#!/usr/bin/env python3
"""The PyTorch peer of our training-step benchmark: the same step, as fast as stock PyTorch does it on a CPU.

One step, per rank: 64 samples of W features -> 4 x (Linear(W, W), GELU with tanh) -> softmax cross-entropy over W classes
-> gradients, averaged over the ranks by DDP (gloo, 127.0.0.1) -> Adam. float32, one thread per process.

    torch_step.py --ranks 1|2|... --width 512|1024 [--steps 100] [--warmup 20]

stdout is one line:  torch <version> ranks=<n> width=<w> median_ms=<x> min_ms=<y>      (rank 0, over the steps)
Exit status: 0 measured, 2 wrong use or a PyTorch too old, 77 no PyTorch here (ctest's "skipped").
"""
import argparse
import gc
import os
import socket
import statistics
import sys
import time

BATCH = 64
BATCHES = 64  # different ones, see data()


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ranks", type=int, default=1)
    p.add_argument("--width", type=int, default=512)
    p.add_argument("--steps", type=int, default=100, help="measured steps")
    p.add_argument("--warmup", type=int, default=20, help="steps before them")
    p.add_argument("--bias", type=int, choices=(0, 1), default=1)
    p.add_argument("--mkldnn", type=int, choices=(0, 1), default=1, help="let PyTorch use oneDNN")
    p.add_argument("--adam", choices=("loop", "foreach"), default="loop", help="Adam's implementation")
    p.add_argument("--bucket-mb", type=float, default=25, help="DDP's bucket size (25 is DDP's own)")
    p.add_argument("--bucket-view", type=int, choices=(0, 1), default=1, help="gradients live in the buckets")
    p.add_argument("--blas-core", default="auto", help="OpenBLAS kernels: auto, default, or a name (Haswell, ...)")
    a = p.parse_args()
    if min(a.ranks, a.width, a.steps) < 1 or a.warmup < 0:
        p.error("--ranks, --width and --steps must be at least 1, --warmup at least 0")
    return a


def best_blas_core():
    """OpenBLAS's name for the widest vectors this processor has. An OpenBLAS older than the processor does not know it
    and falls back to SSE3 kernels, half as fast: it has to be told."""
    try:
        with open("/proc/cpuinfo") as f:
            flags = set(next((line for line in f if line.startswith("flags")), "").split())
    except OSError:
        flags = set()
    if flags >= {"avx512f", "avx512bw", "avx512dq", "avx512vl"}: return "SkylakeX"
    if flags >= {"avx2", "fma"}: return "Haswell"
    return None


def fair_environment(blas_core):
    """What has to be set before the process starts. Both sides of the comparison keep freed memory instead of giving it
    back and faulting it in again in every step, use huge pages, and use the processor's own matrix kernels."""
    env = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
    env.setdefault("MALLOC_MMAP_THRESHOLD_", str(1 << 30))
    env.setdefault("MALLOC_TRIM_THRESHOLD_", str(1 << 34))
    env.setdefault("MALLOC_TOP_PAD_", str(64 << 20))
    env.setdefault("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")  # madvise(MADV_HUGEPAGE); ignored before glibc 2.35
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"): env[name] = "1"
    best = best_blas_core()
    if best == "SkylakeX": env.setdefault("ATEN_CPU_CAPABILITY", "avx512")  # PyTorch 1.13 stops at AVX2 by itself
    core = {"auto": best, "default": None}.get(blas_core, blas_core)
    if core: env["OPENBLAS_CORETYPE"] = core
    return env


def data(torch, width, rank):
    """Random samples with random labels. Many batches: trained on one alone, the loss reaches 1e-5 within a few steps,
    the gradients become denormal numbers and the step several times slower, which is no training anyone does."""
    generator = torch.Generator().manual_seed(1 + rank)
    samples = torch.randn(BATCHES, BATCH, width, generator=generator)
    return samples, torch.randint(0, width, (BATCHES, BATCH), generator=generator)


def train(rank, a, port):
    import torch
    torch.set_num_threads(1)
    torch.backends.mkldnn.set_flags(bool(a.mkldnn))
    torch.manual_seed(0)
    layers = []
    for _ in range(4):
        layers += [torch.nn.Linear(a.width, a.width, bias=bool(a.bias)), torch.nn.GELU(approximate="tanh")]
    model = torch.nn.Sequential(*layers)
    if a.ranks > 1:
        torch.distributed.init_process_group(
            "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=a.ranks)
        model = torch.nn.parallel.DistributedDataParallel(
            model, bucket_cap_mb=a.bucket_mb, gradient_as_bucket_view=bool(a.bucket_view))
    adam = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=a.adam == "foreach")
    samples, labels = data(torch, a.width, rank)

    milliseconds = []
    gc.disable()
    for step in range(a.warmup + a.steps):
        start = time.perf_counter()
        adam.zero_grad(set_to_none=True)
        output = model(samples[step % BATCHES])
        torch.nn.functional.cross_entropy(output, labels[step % BATCHES]).backward()
        adam.step()
        milliseconds.append(1e3 * (time.perf_counter() - start))
    measured = milliseconds[a.warmup:]
    if rank == 0:
        print(f"torch {torch.__version__} ranks={a.ranks} width={a.width} "
              f"median_ms={statistics.median(measured):.3f} min_ms={min(measured):.3f}", flush=True)
    if a.ranks > 1: torch.distributed.destroy_process_group()


def main():
    a = parse()
    env = fair_environment(a.blas_core)
    if env != dict(os.environ): os.execve(sys.executable, [sys.executable, *sys.argv], env)  # once: then they are equal
    try:
        import torch
    except ImportError:
        print("torch_step.py: no PyTorch for this Python; skipped", file=sys.stderr)
        return 77
    try:
        torch.nn.GELU(approximate="tanh")
    except TypeError:
        print(f"torch_step.py: PyTorch {torch.__version__} has no tanh GELU; 1.12 or newer is needed", file=sys.stderr)
        return 2
    if a.ranks == 1:
        train(0, a, None)
        return 0
    if "lo" in (name for _, name in socket.if_nameindex()): os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with socket.socket() as s:  # a free port
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    torch.multiprocessing.spawn(train, args=(a, port), nprocs=a.ranks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
