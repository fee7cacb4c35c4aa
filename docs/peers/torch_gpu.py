#!/usr/bin/env python3
"""The PyTorch peer of measure_gpu: the same operations on the same sizes, as stock PyTorch (eager) does them on a GPU.

    torch_gpu.py [--elements N] [--size N] [--rounds N]         with the defaults of measure_gpu

stdout: a line `torch <version> on <chip>`, then one for each operation: its name and size as in measure_gpu's, and the
time of a call in ms, the median of the rounds. fp32 products without TF32, bf16 ones with sums in fp32, Adam fused.
Exit status: 0 measured, 2 wrong use, 77 no PyTorch that finds a GPU.
"""
import argparse
import statistics
import sys
import time


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--elements", type=int, default=1 << 27, help="of a tensor, where memory is the limit")
    p.add_argument("--size", type=int, default=8192, help="rows and columns in a product; half of it too")
    p.add_argument("--rounds", type=int, default=10)
    a = p.parse_args()
    if a.elements < 1 or a.size < 2 or a.rounds < 1:
        p.error("--elements and --rounds must be at least 1, --size at least 2")
    return a


def seconds_of(torch, calls, call):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls): call()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def measure(torch, rounds, name, size, call):
    """Times as measure_gpu does: batches of 20 ms or a call, and their median."""
    seconds_of(torch, 1, call)
    calls = int(min(max(0.02 / max(seconds_of(torch, 1, call), 1e-9), 1), 1000))
    median = statistics.median(seconds_of(torch, calls, call) / calls for _ in range(rounds))
    print(f"{name:<28} {size:>10} {1e3 * median:>11.4g} ms", flush=True)


def random_numbers(torch, rows, cols, dtype):
    return torch.empty(rows, cols, device="cuda", dtype=torch.float32).uniform_(-1, 1).to(dtype)


def element_wise(torch, a, dtype, suffix):
    cols = min(a.elements, 4096)
    rows = a.elements // cols
    z, y = (random_numbers(torch, rows, cols, dtype) for _ in range(2))
    bias = random_numbers(torch, 1, cols, dtype)

    def bias_gelu():
        z.add_(bias)
        torch.nn.functional.gelu(z, approximate="tanh")

    measure(torch, a.rounds, "add" + suffix, rows * cols, lambda: z.add_(y))
    measure(torch, a.rounds, "gelu_backward" + suffix, rows * cols,
            lambda: torch.ops.aten.gelu_backward(y, z, approximate="tanh"))
    measure(torch, a.rounds, "bias_gelu" + suffix, rows * cols, bias_gelu)


def adam(torch, a, dtype, suffix):
    weights = random_numbers(torch, 1, a.elements, torch.float32)  # what takes the updates
    weights.grad = random_numbers(torch, 1, a.elements, torch.float32)
    optimizer = torch.optim.Adam([weights], lr=1e-3, fused=True)
    parameters = gradient = None
    if dtype != torch.float32:
        parameters, gradient = (random_numbers(torch, 1, a.elements, dtype) for _ in range(2))

    def step():
        if gradient is not None: weights.grad.copy_(gradient)
        optimizer.step()
        if parameters is not None: parameters.copy_(weights)

    measure(torch, a.rounds, "adam" + suffix, a.elements, step)


def products(torch, a, size, dtype, suffix):
    x, y, z = (random_numbers(torch, size, size, dtype) for _ in range(3))
    measure(torch, a.rounds, "multiply" + suffix, size, lambda: torch.mm(x, y, out=z))
    measure(torch, a.rounds, "multiply_transposed" + suffix, size, lambda: torch.mm(x, y.t(), out=z))
    measure(torch, a.rounds, "add_transposed_product" + suffix, size, lambda: z.addmm_(x.t(), y))


def main():
    a = parse()
    try:
        import torch
    except ImportError:
        print("torch_gpu.py: no PyTorch for this Python; skipped", file=sys.stderr)
        return 77
    if not torch.cuda.is_available():
        print(f"torch_gpu.py: PyTorch {torch.__version__} finds no GPU; skipped", file=sys.stderr)
        return 77
    if int(torch.__version__.split(".")[0]) < 2:
        print(f"torch_gpu.py: PyTorch {torch.__version__} has no fused Adam, 2.0 has; skipped", file=sys.stderr)
        return 77
    print(f"torch {torch.__version__} on {torch.cuda.get_device_name()}", flush=True)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    types = [(torch.float32, "_f32"), (torch.bfloat16, "_bf16")]
    with torch.no_grad():
        one = random_numbers(torch, 1, 1, torch.float32)
        measure(torch, a.rounds, "launch", 1, lambda: one.add_(one))
        for dtype, suffix in types:
            element_wise(torch, a, dtype, suffix)
            adam(torch, a, dtype, suffix)
        for dtype, suffix in types:
            for size in (a.size // 2, a.size): products(torch, a, size, dtype, suffix)
    return 0


if __name__ == "__main__":
    sys.exit(main())
