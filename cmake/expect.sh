#!/bin/sh
# expect.sh STATUS REGEX COMMAND...: passes if COMMAND ends with STATUS and prints a line that matches the
# extended REGEX (empty: any output). Shows all that the command printed. STATUS nonzero: any but 0.
want=$1 regex=$2
shift 2
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
"$@" >"$out" 2>&1
got=$?
cat "$out"
if [ "$want" = nonzero ]; then
  [ "$got" -ne 0 ] || { echo "expect: the exit status is 0, and must not be"; exit 1; }
elif [ "$got" -ne "$want" ]; then
  echo "expect: the exit status is $got, not $want"
  exit 1
fi
if [ -n "$regex" ] && ! grep -Eq -e "$regex" "$out"; then
  echo "expect: no line matches $regex"
  exit 1
fi
