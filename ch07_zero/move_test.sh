#!/bin/sh
# move_test.sh PROGRAM [MPIEXEC FLAG]: a training that is saved on 4 ranks and goes on on 3 and then on 2, at other
# stages; and what is said of a checkpoint that was damaged. Without MPIEXEC the ranks are threads.
set -u
program=$1
shift
work=$(mktemp -d) || exit 1
trap 'cd /; rm -rf "$work"' EXIT
cd "$work" || exit 1

failed() { echo "move_test: $1"; cat log; exit 1; }
run() {  # run STATUS RANKS FLAGS...: the program's output is in log
  want=$1 ranks=$2
  shift 2
  if [ -n "$mpiexec" ]; then
    # shellcheck disable=SC2086
    $mpiexec "$ranks" "$program" "$@" >log 2>&1
  else
    "$program" --world "$ranks" "$@" >log 2>&1
  fi
  status=$?
  [ $status -eq "$want" ] || failed "status $status, not $want, of $ranks ranks with $*"
  grep -E '^ *(resumed|saved|exported) |^all agree' log
}
says() { [ "$(grep -Ec "$1" log)" -eq 1 ] || failed "no line, or several, with $1"; }
state() { sed -nE "s/^ *$1 .* state ([0-9a-f]{16})\$/\\1/p" log | tail -1; }
mpiexec=$*

run 0 4 --epochs 1 --save state
says '^all agree$'
four=$(state saved)
run 0 3 --epochs 2 --stage 1 --resume state --save state
says '^all agree$'
says '^resumed state at step 15, saved by 4 rank\(s\) at stage 3: '
[ "$(state resumed)" = "$four" ] || failed "the state changed on the way from 4 ranks to 3"
three=$(state saved)
run 0 2 --epochs 2 --stage 0 --resume state --export model.safetensors
says '^resumed state at step 30, saved by 3 rank\(s\) at stage 1: '
says '^exported model.safetensors: 3 layers in f32, 36.41 KB$'
[ "$(state resumed)" = "$three" ] || failed "the state changed on the way from 3 ranks to 2"

run 2 2 --epochs 2 --save state
says "^ch07_zero: 'state' holds the checkpoint of a run already; go on from it with --resume state --save state"
run 2 2 --epochs 1 --resume state
says "^ch07_zero: 'state' has 30 steps behind it, and --epochs 1 makes 15; give --epochs 2 or more"
run 2 3 --epochs 2 --resume state --precision bf16
says "^ch07_zero: 'state/manifest.json' was saved with --precision fp32, and this run has --precision bf16"
cp state/manifest.json before
ln -s state link
run 2 3 --epochs 2 --resume state --figure link/manifest.json
says "^ch07_zero: --figure would write into the checkpoint 'state'"
cmp before state/manifest.json || failed "the manifest was written over"
mkdir state/manifest.json.part
run 2 2 --epochs 2 --resume state --save state
says "^ch07_zero: cannot save to 'state': cannot write 'state/manifest.json': Is a directory; give another folder"
rmdir state/manifest.json.part
shard=$(echo state/save-*/rank-1.safetensors)
cp "$shard" whole
printf 'x' | dd of="$shard" bs=1 seek=9000 conv=notrunc 2>/dev/null
run 1 2 --epochs 2 --resume state
says "^rank 0 of 2: '$shard' is damaged: layers.0.[a-z_]+ has other bits than were saved"
head -c 5000 whole >"$shard"
run 1 3 --epochs 2 --resume state
says "^rank 0 of 3: '$shard' has 5000 bytes and must have [0-9]+: it was cut short, or changed"
rm "$shard"
mkfifo "$shard"
run 1 2 --epochs 2 --resume state
says "^rank 0 of 2: cannot read '$shard': it is no plain file"
