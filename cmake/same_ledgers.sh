#!/bin/sh
# same_ledgers.sh COMMAND...: a run of a chapter on the cpu and on a GPU print the same bytes, counts, times of the
# clock and verdicts on claims, line by line. Left out are what the devices round each in their own way (distances from
# golden, how many floats differ, hashes), the lines that name the device, and what is for the memory of one host.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
for device in cpu cuda; do
  "$@" --device $device >"$work/out" 2>&1 || { echo "on $device: status $?"; cat "$work/out"; exit 1; }
  sed -E -e '/^device |rank\(s\) on /d' -e '/^golden, /d' -e 's/, [0-9]+ added in own order/, some added in own order/' \
    -e 's/ +[0-9a-f]{16}$/ hash/' -e 's/ +state$/ state/' -e '/^  shared  /d' -e 's/of the [0-9]+ algorithms/of the algorithms/' "$work/out" >"$work/$device"
done
[ "$(grep -c . "$work/cpu")" -gt 20 ] || { echo 'too little is printed to be compared'; cat "$work/cpu"; exit 1; }
diff "$work/cpu" "$work/cuda" && echo "$(grep -c . "$work/cpu") lines are the same on a GPU"
