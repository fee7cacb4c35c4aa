#!/bin/sh
# Runs patterns of messages under SimGrid and by the clock, on a network of the same latency and bandwidth, and
# compares the two times. Status 0: they agree within LIMIT percent for every size (it is 5, where SimGrid 3.32 comes
# within 0.1, to leave room for other versions); and of several patterns both say the same order, where the clock says
# that one takes at least 5 percent longer than another.
#
#   compare_clock.sh TOOLS CLUSTER PATTERN[,PATTERN...] RANKS SIZE...
#   compare_clock.sh build-simulated/common/tools slow ring 16 4MB 64MB
#
# TOOLS: the folder of the programs. CLOCK_CLUSTER: another profile for the clock alone (to see that they differ).
# PROGRAM: another program than TOOLS/patterns that takes --pattern and --bytes, with PROGRAM_smpi.so beside it.
set -u
[ $# -ge 5 ] || { echo "usage: $0 TOOLS CLUSTER PATTERN[,PATTERN...] RANKS SIZE..." >&2; exit 2; }
tools=$1 cluster=$2 pattern=$3 ranks=$4
shift 4
limit=${LIMIT:-5} program=${PROGRAM:-$tools/patterns}
patterns=$(echo "$pattern" | tr , " ")
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
# limits a connection; latency does not make a connection's share of a busy link smaller. The control channel, which is
# outside the times, takes collectives that do not cost N^2 messages.
simulated() {
  smpirun -np "$ranks" -platform "$work/platform.xml" -hostfile "$work/hosts" --log=root.thres:critical \
    --cfg=smpi/lat-factor:0:1 --cfg=smpi/bw-factor:0:1 --cfg=smpi/simulate-computation:no \
    --cfg=network/crosstraffic:0 --cfg=network/TCP-gamma:0 --cfg=network/weight-S:0 \
    --cfg=smpi/allgather:bruck --cfg=smpi/allgatherv:ring \
    "${program}_smpi.so" --pattern "$1" --bytes "$2"
}
clock() {
  "$program" --world "$ranks" --device meta --cluster "${CLOCK_CLUSTER:-$cluster}" --pattern "$1" --bytes "$2"
}
seconds() { sed -n 's/^.*: \([0-9.e+-]*\) s (.*$/\1/p' "$1"; }

status=0
for size; do
  : >"$work/times"
  for one in $patterns; do
    simulated "$one" "$size" >"$work/simulated" || { echo "$0: the simulated run failed" >&2; exit 2; }
    clock "$one" "$size" >"$work/clock" || { echo "$0: the run by the clock failed" >&2; exit 2; }
    echo "$cluster $one $ranks $size $(seconds "$work/simulated") $(seconds "$work/clock")" >>"$work/times"
  done
  awk -v limit="$limit" '
    NF != 6 || $5 <= 0 || $6 <= 0 { print "no time was printed: " $0; bad = 1; exit }
    {
      ratio = $6 / $5
      agree = ratio >= 1 - limit / 100 && ratio <= 1 + limit / 100
      printf "%-7s %-16s %3d ranks %5s   SimGrid %.6f ms   clock %.6f ms   ratio %.4f   %s\n",
        $1, $2, $3, $4, 1e3 * $5, 1e3 * $6, ratio, agree ? "agree" : "DIFFER by more than " limit " %"
      bad = bad || !agree
      name[NR] = $2; simulated[NR] = $5; clock[NR] = $6
    }
    END {
      for (a = 1; a <= NR; a++) for (b = 1; b <= NR; b++) {
        if (clock[a] > 1.05 * clock[b] && simulated[a] <= simulated[b]) {
          print "another ORDER: by the clock " name[a] " takes longer than " name[b]; bad = 1
        }
      }
      exit bad
    }' "$work/times" || status=1
done
exit $status
