#!/bin/sh
# lesson.sh README.md README.zh.md BUILD_FOLDER
#
# Runs each `$ command` in the console blocks of README.md, from the root of the repository, and compares what
# it prints with what the lesson shows: line by line, spaces apart. A line `...` stands for any number of lines.
# Whole numbers must be equal; numbers with a decimal point may differ by 3 %, as processors round differently.
# So hashes (16 hexadecimal digits) may be others, one for one: equal where the lesson shows equal ones.
# Then checks that README.zh.md holds the same console blocks.
set -u
readme=$1 chinese=$2 build=$3
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

blocks() { awk '/^```console/ {inside = 1; next} /^```/ {inside = 0} inside' "$1"; }
blocks "$readme" >"$work/blocks"
blocks "$chinese" >"$work/chinese"
[ -s "$work/blocks" ] || { echo "$readme has no console block"; exit 1; }
diff "$work/blocks" "$work/chinese" || { echo "the console blocks of $readme and $chinese differ"; failed=1; }

# Commands, names and numbers of the prose are the same in both languages too.
# shellcheck disable=SC2016  # backquotes of Markdown
facts() { grep -oE '`[^`]+`|[0-9]+([.,][0-9]+)*' "$1" | sort -u; }
facts "$readme" >"$work/facts"
facts "$chinese" | diff "$work/facts" - || { echo "$readme and $chinese differ in a name or a number"; failed=1; }

# One file with the expected lines for each command.
awk -v work="$work" '/^\$ / {n++; print substr($0, 3) >(work "/command" n); next} {print >(work "/want" n)}
  END {print n >(work "/count")}' "$work/blocks"

n=1
while [ "$n" -le "$(cat "$work/count")" ]; do
  command=$(sed "s#build/#'$build'/#g" "$work/command$n")
  echo "\$ $command"
  # Lessons are about the cpu: a build with CUDA says that it finds no GPU, and goes on as they show.
  CUDA_VISIBLE_DEVICES='' sh -c "$command" 2>&1 | grep -v '^device cpu, transport mpi: ' | sed "s#$build/#build/#g" >"$work/got"
  touch "$work/want$n"
  awk '
    function close_to(a, b, d) { d = a - b; if (d < 0) d = -d; if (b < 0) b = -b; return d <= 0.03 * b + 0.001 }
    function is_hash(word) { return length(word) == 16 && word !~ /[^0-9a-f]/ && word ~ /[a-f]/ }
    function same_hash(got, want) {
      if (want in of_lesson) return of_lesson[want] == got
      return length(got) == 16 && got !~ /[^0-9a-f]/ && !(got in of_run)
    }
    function same(got, want, i, g, w, a, b) {
      a = split(got, g, " "); b = split(want, w, " ")
      if (a != b) return 0
      for (i = 1; i <= a; i++) {
        if (is_hash(w[i])) { if (same_hash(g[i], w[i])) continue; return 0 }
        if (g[i] == w[i]) continue
        if (g[i] !~ /^[0-9]+\.[0-9]+$/ || w[i] !~ /^[0-9]+\.[0-9]+$/ || !close_to(g[i], w[i])) return 0
      }
      return 1
    }
    NR == FNR { want[++wants] = $0; next }
    { got[++gots] = $0 }
    END {
      at = 1; any = 0
      for (k = 1; k <= wants; k++) {
        if (want[k] == "...") { any = 1; continue }
        start = at
        while (at <= gots && !same(got[at], want[k]) && any) at++
        if (at > gots || !same(got[at], want[k])) {
          print "the lesson shows:\n  " want[k] "\nand the program printed, from there on:"
          for (j = start; j <= gots && j < start + 12; j++) print "  " got[j]
          exit 1
        }
        b = split(want[k], w, " "); split(got[at], g, " ")
        for (j = 1; j <= b; j++) if (is_hash(w[j])) { of_lesson[w[j]] = g[j]; of_run[g[j]] }
        at++; any = 0
      }
      if (!any && at <= gots && got[at] != "") { print "the program printed more than the lesson shows:\n  " got[at]; exit 1 }
    }' "$work/want$n" "$work/got" || failed=1
  n=$((n + 1))
done
[ "$failed" -eq 0 ] && echo "the lesson shows what the programs print"
exit "$failed"
