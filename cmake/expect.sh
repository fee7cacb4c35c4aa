#!/bin/sh
# expect.sh STATUS REGEX [ONCE] COMMAND...: passes if COMMAND ends with STATUS, prints a line that matches the
# extended REGEX (-: any output; with ONCE exactly one such line), and leaves no process behind. Shows all
# that the command printed. STATUS nonzero: any but 0.
want=$1 regex=$2
shift 2
once=
if [ "$1" = ONCE ]; then
  once=1
  shift
fi
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
env FIVECUTS_RUN=$$ "$@" >"$out" 2>&1
got=$?
cat "$out"
if [ "$want" = nonzero ]; then
  [ "$got" -ne 0 ] || { echo "expect: the exit status is 0, and must not be"; exit 1; }
elif [ "$got" -ne "$want" ]; then
  echo "expect: the exit status is $got, not $want"
  exit 1
fi
if [ "$regex" != - ]; then
  lines=$(grep -Ec -e "$regex" "$out")
  [ "$lines" -gt 0 ] || { echo "expect: no line matches $regex"; exit 1; }
  [ -z "$once" ] || [ "$lines" -eq 1 ] || { echo "expect: $lines lines match $regex"; exit 1; }
fi
# What the command started carries its mark; a rank may need a moment to die.
for _ in 1 2 3 4 5 6; do
  left=$(grep -lsz "^FIVECUTS_RUN=$$\$" /proc/[0-9]*/environ)
  [ -z "$left" ] && exit 0
  sleep 0.5
done
echo "expect: left behind: $(echo "$left" | tr "\n" " ")"
exit 1
