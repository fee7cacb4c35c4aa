#!/bin/sh
# Runs a pattern of messages under SimGrid and by the clock, on a network of the same latency and bandwidth, and
# compares the two times. Status 0: they agree within LIMIT percent for every size (it is 5, where SimGrid 3.32 comes
# within 0.1, to leave room for other versions).
#
#   compare_clock.sh TOOLS CLUSTER PATTERN RANKS SIZE...
#   compare_clock.sh build-simulated/common/tools slow ring 16 4MB 64MB
#
# TOOLS: the folder of the programs. CLOCK_CLUSTER: another profile for the clock alone (to see that they differ).
set -u
[ $# -ge 5 ] || { echo "usage: $0 TOOLS CLUSTER PATTERN RANKS SIZE..." >&2; exit 2; }
tools=$1 cluster=$2 pattern=$3 ranks=$4
shift 4
limit=${LIMIT:-5}
work=$(mktemp -d) || exit 2
trap 'rm -r "$work"' EXIT

"$tools/simgrid_platform" "$cluster" "$ranks" >"$work/platform.xml" || exit 2
i=0
while [ $i -lt "$ranks" ]; do
  echo "host$i"
  i=$((i + 1))
done >"$work/hosts"

# The factors by which SimGrid bends latency and bandwidth stand for an old TCP cluster; what a program computes here,
# on the real machine, must take no simulated time; acknowledgements do not slow the other direction; no window of TCP
# limits a connection; latency does not make a connection's share of a busy link smaller.
simulated() {
  smpirun -np "$ranks" -platform "$work/platform.xml" -hostfile "$work/hosts" --log=root.thres:critical \
    --cfg=smpi/lat-factor:0:1 --cfg=smpi/bw-factor:0:1 --cfg=smpi/simulate-computation:no \
    --cfg=network/crosstraffic:0 --cfg=network/TCP-gamma:0 --cfg=network/weight-S:0 \
    "$tools/patterns_smpi.so" --pattern "$pattern" --bytes "$1"
}
clock() {
  "$tools/patterns" --world "$ranks" --device meta --cluster "${CLOCK_CLUSTER:-$cluster}" --pattern "$pattern" \
    --bytes "$1"
}
seconds() { sed -n 's/^.*: \([0-9.e+-]*\) s (.*$/\1/p' "$1"; }

status=0
for size; do
  simulated "$size" >"$work/simulated" || { echo "$0: the simulated run failed" >&2; exit 2; }
  clock "$size" >"$work/clock" || { echo "$0: the run by the clock failed" >&2; exit 2; }
  printf '%s %s %s %s %s %s\n' "$cluster" "$pattern" "$ranks" "$size" "$(seconds "$work/simulated")" \
    "$(seconds "$work/clock")" | awk -v limit="$limit" '
    NF != 6 || $5 <= 0 || $6 <= 0 { print "no time was printed: " $0; exit 2 }
    {
      ratio = $6 / $5
      agree = ratio >= 1 - limit / 100 && ratio <= 1 + limit / 100
      printf "%-7s %-10s %3d ranks %5s   SimGrid %.6f ms   clock %.6f ms   ratio %.4f   %s\n",
        $1, $2, $3, $4, 1e3 * $5, 1e3 * $6, ratio, agree ? "agree" : "DIFFER by more than " limit " %"
      exit !agree
    }' || status=1
done
exit $status
