#!/usr/bin/env bash
# gpu_check_test.sh: docs/gpu_check on an invented machine, whose programs only pretend: what is well, what failed, what
# is skipped and what found no time must each be said, and be in the exit status.
# shellcheck disable=SC2016  # what is in quotes is for the programs
set -u
cd "$(dirname "$0")/../.." || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
bin=$work/bin wrong=0
mkdir "$bin"

fake() { printf '#!/bin/sh\n%s\n' "$2" >"$bin/$1" && chmod +x "$bin/$1"; }
fake nvidia-smi 'case $1 in
  *name) echo "NVIDIA H200" ;; *compute_cap) echo 9.0 ;; *total) echo 143771 ;; *) echo 580.1 ;;
esac'
fake nvcc 'echo "Cuda compilation tools, release 13.0, V13.0.1"'
fake cmake 'case $* in
  *--preset*-DCMAKE_CUDA_ARCHITECTURES=90* | --build*) ;; *) echo "not asked so: $*"; exit 1 ;;
esac'
fake ctest 'echo "100% tests passed"'
fake compute-sanitizer 'exit 0'
fake mpirun 'case $* in
  *measure_gpu*) [ "$OMPI_MCA_rmaps_base_oversubscribe" = 1 ] || exit 4
    echo "device cuda, transport nccl: 1 rank on 1 GPU (NVIDIA H200); a GPU for each rank"
    echo "operation size time rate"
    echo "adam_f32 1000 2.000 ms 2400 GB/s"
    echo "multiply_bf16 8192 1.000 ms 494.5 TFLOP/s"
    echo "launch 1 0.002 ms 500000 call/s" ;;
  $FAKE_FAULT) echo "rank 1 of 4: a wrong sum"; exit 1 ;;
esac'
fake torch 'echo "torch 2.9 on NVIDIA H200"; echo "adam_f32 1000 3.000 ms"; echo "multiply_bf16 4096 3.000 ms"'
fake no_torch 'echo "no PyTorch for this Python; skipped" >&2; exit 77'
fake slow 'sleep 20'

# expect STATUS PYTHON LIMIT REGEX...: how the check ends, and lines of what it prints.
expect() {
  local want=$1 status
  PYTHON=$2 PATH=$bin:$PATH docs/gpu_check --build "$work/build" --limit "$3" >"$work/out" 2>&1
  status=$?
  shift 3
  [ $status = "$want" ] || { echo "gpu_check_test: status $status, not $want"; wrong=1; }
  grep -E 'gpu_check: line [0-9]+:' "$work/out" && wrong=1  # the shell itself has something to say
  for line; do
    grep -qE -e "$line" "$work/out" || { echo "gpu_check_test: no line matches $line"; wrong=1; }
  done
  [ $wrong = 0 ] || { cat "$work/out"; exit 1; }
}

unset CUDA_VISIBLE_DEVICES OMPI_MCA_rmaps_base_oversubscribe
export FAKE_FAULT=nothing
expect 0 torch 60 '^1 x NVIDIA H200; CUDA 13.0, driver 580.1, torch 2.9' '^build +ok ' '^all tests +ok ' \
  '^ch02_data_parallel, 1 and 4 ranks +ok ' '^memcheck, ch02 for an epoch +ok ' \
  '^adam_f32 .* 2400 GB/s +50 % +1.50 x$' '^multiply_bf16 .* 494.5 TFLOP/s +50 % +-$' '^launch .* call/s +- +-$' \
  'all that ran is well$'
expect 0 no_torch 60 '^rates, PyTorch +skipped .*no PyTorch for this Python' '^adam_f32 .* 50 % +-$'
FAKE_FAULT='*-n?4?*ch02_data_parallel\ *' expect 1 torch 60 '^ch02_data_parallel.* FAILED .*4 rank\(s\): status 1' \
  'rank 1 of 4: a wrong sum' '^all tests +ok ' 'NOT all is well$'
expect 1 slow 4 '^rates, PyTorch +FAILED .*not done after' '^all tests +NOT RUN .*the 4 s are over' 'NOT all is well$'
fake cmake 'echo "a wrong line"; exit 1'
expect 1 torch 60 'a wrong line' '^configure +FAILED ' '^nothing was measured' 'NOT all is well$'
fake nvidia-smi 'exit 9'
if [ ! -e /dev/nvidia0 ] && [ ! -e /usr/lib/wsl/lib/libcuda.so.1 ]; then
  expect 77 torch 60 'there is no NVIDIA GPU'
fi
CUDA_VISIBLE_DEVICES='' expect 77 torch 60 'hides every GPU'
echo 'gpu_check says what is well, failed, skipped and not run'
