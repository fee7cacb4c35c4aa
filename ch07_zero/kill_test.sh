#!/bin/sh
# kill_test.sh ROUNDS COMMAND...: starts COMMAND, a run of ch07_zero that saves after every step, kills all of its
# ranks at a random moment soon after it has saved, goes on from what is left, and so on. What is resumed must be,
# bit for bit, the state that a run which nobody kills has at that step, and no earlier one than the last that was
# reported as saved: nothing is lost. Ends with 77 where there is no /proc.
set -u
rounds=$1
shift
[ -r /proc/self/environ ] || { echo "kill_test: skipped, since there is no /proc"; exit 77; }
work=$(mktemp -d) || exit 1
cd "$work" || exit 1
trap 'kill_ranks; cd /; rm -rf "$work"' EXIT

start() {  # a step is an epoch, and an epoch is saved
  : >log
  FIVECUTS_KILL=$work "$@" --batch 1438 --layers 2 --width 24 --epochs 1000 >log 2>&1 &
  pid=$!
}
kill_ranks() {  # without a word, as in a power cut; mpirun, which carries the mark too, cleans up after them
  # shellcheck disable=SC2013  # numbers
  for process in $(grep -lsz "^FIVECUTS_KILL=$work\$" /proc/[0-9]*/environ | cut -d/ -f3); do
    [ "$(cat "/proc/$process/comm" 2>/dev/null)" != ch07_zero ] || kill -9 "$process" 2>/dev/null
  done
}
end() {
  kill_ranks
  wait "$pid" 2>/dev/null
}
wait_for() {  # a line of the log, for a minute
  tries=0
  until grep -Eq "$1" log; do
    tries=$((tries + 1))
    if [ $tries -gt 1200 ] || ! kill -0 "$pid" 2>/dev/null; then
      grep -Eq "$1" log && return
      echo "kill_test: after $killed kills no line '$1' came:"
      cat log
      exit 1
    fi
    sleep 0.05
  done
}
states() {  # "step state" of the lines that name them
  sed -nE "s/^ *($1) .* at step ([0-9]+)[:,].*, state ([0-9a-f]{16})\$/\\2 \\3/p" log
}

last_step() {  # of the last line of the log that says "saved" or "resumed"; 0 without one
  states "$1" | tail -1 | awk '{step = $1} END {print step + 0}'
}
resume() {
  start "$@" --save state --resume state
  wait_for '^resumed state at step'
  [ "$(last_step resumed)" -ge "$reported" ] && return
  echo "kill_test: after kill $killed step $reported was reported as saved, and this was resumed:"
  cat log
  exit 1
}

killed=0 halves=0 reported=0
while [ "$killed" -lt "$rounds" ]; do
  if [ "$killed" -eq 0 ]; then start "$@" --save state; else resume "$@"; fi
  wait_for '^  saved state at step'
  sleep "$(awk -v seed="$killed" 'BEGIN {srand(seed * 7919 + 1); print rand() * 0.15}')"
  end
  killed=$((killed + 1))
  reported=$(last_step saved)
  states 'saved|resumed' >>found
  if [ "$(find state | grep -c 'save-[0-9]*$')" -ne 1 ] || find state | grep -q 'part$'; then
    halves=$((halves + 1))
  fi
done
resume "$@"
wait_for '^  saved state at step'
end
states 'saved|resumed' >>found
last=$(sort -n found | tail -1 | cut -d' ' -f1)
resumed=$(grep -c . found)

start "$@" --save whole
wait_for "^  saved whole at step $last:"
end
states saved >whole.states
wrong=$(sort -u found | grep -vxFf whole.states)
echo "killed $killed times, $halves of them in the middle of a save; $resumed states up to step $last"
[ -z "$wrong" ] || { echo "kill_test: not the states of a run that nobody killed: $wrong"; exit 1; }
[ "$rounds" -lt 10 ] || [ "$halves" -gt 0 ] || { echo "kill_test: no kill fell into a save"; exit 1; }
