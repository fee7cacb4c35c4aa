#!/bin/sh
# gpu_trace.sh LAYERS MPIRUN RANKS TEST_PROGRAM
#
# Runs the steps of Gpu.StepsToBeTraced under the emulator's trace and checks what they start, and when. The emulator
# starts nothing before the host waits for it, so a line of its trace is a wait before that line.
#   plain        nothing starts before all has been asked for; LAYERS memsets and 7 LAYERS - 1 kernels and products,
#                LAYERS all-reduces
#   rounding     in bf16: LAYERS kernels more, for the weights
#   overlapped   each all-reduce on the second stream, after an event of the first; the update after an event of each;
#                one copy to the host, which comes last
set -u
layers=$1 ranks=$3
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
# A file for each rank: through mpirun their lines would mix.
# shellcheck disable=SC2016  # of the ranks' shells
"$2" -n "$3" sh -c 'CUDA_EMULATOR_TRACE=1 exec "$1" --gtest_filter=Gpu.StepsToBeTraced 2>"$2/$OMPI_COMM_WORLD_RANK"' \
  sh "$4" "$work" >"$work/out" || { cat "$work"/*; exit 1; }
trace=$work/0
awk -v layers="$layers" -v ranks="$ranks" '
  function expect(what, got, want) { if (got != want) { print what ": " got ", not " want; failed = 1 } }
  /^step: asked/ { asked = 1; next }
  /^step: done/ { finished = part == "overlapped"; next }
  /^step: / { part = $2; next }
  !/rank 0: stream/ || finished || part == "" || part == "preparing" { next }
  { stream = $5; sub(":", "", stream); work = /: kernel |: gemm / }
  part == "plain" {
    if (ranks == 1 && !asked) early++
    if (work) kernels++
    if (/cudaMemsetAsync/) memsets++
    if (/ncclAllReduce/) reductions++
    next
  }
  part == "rounding" { if (work) rounding++; next }
  {
    copied_last = 0
    if (work) expect("the stream of a kernel", stream, 1)
    if (/cudaMemcpyAsync/) { copies++; copied_last = 1 }
    if (/cudaStreamWaitEvent/ && stream == 2) ready++
    if (/cudaStreamWaitEvent/ && stream == 1) follows++
    if (/ncclAllReduce/) { expect("the stream of an all-reduce", stream, 2); expect("events before an all-reduce", ready, ++async) }
    if (/Adam/ && !updates++) expect("events before the update", follows, layers)
  }
  END {
    expect("started before all was asked for", early + 0, 0)
    expect("kernels and products of a step", kernels, 7 * layers - 1)
    expect("kernels and products of a step in bf16", rounding, 8 * layers - 1)
    expect("memsets of a step", memsets, layers)
    expect("all-reduces of a step", reductions, layers)
    expect("all-reduces of an overlapped step", async, layers)
    expect("copies of an overlapped step", copies, 1)
    expect("the last is the copy", copied_last, 1)
    expect("the end", finished, 1)
    exit failed
  }' "$trace" || { grep 'step:\|rank 0: stream' "$trace"; exit 1; }
echo "a step of $layers layers: $((7 * layers - 1)) kernels and products, $layers all-reduces, one wait"
