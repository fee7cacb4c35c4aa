# awk -v chip=NAME -f table.awk limits.txt PYTORCH OURS
#
# The table of measured rates: OURS is what measure_gpu printed, PYTORCH what torch_gpu.py did (or an empty file), and
# `chip` a name of limits.txt. Ends with status 1 if OURS holds no measurement.
function known(limit) { return limit == "" ? "unknown" : limit == "-" ? "-" : limit + 0 }

# The limit of a rate in `unit` of operation `name`; "-" where nothing limits it that is in the list.
function limit_of(name, unit) {
  if (name ~ /^(launch|all_reduce)/) return "-"
  if (unit == "GB/s") return known(memory)
  return known(name ~ /_bf16$/ ? bf16 : f32)
}

FNR == 1 { file++ }
file == 1 && /^[^#]/ {
  split($0, field, / *[|] */)
  names = split(field[1], name, / *; */)
  for (k = 1; k <= names; k++) {
    if (name[k] == chip) { memory = field[2]; f32 = field[3]; bf16 = field[4]; source = field[5] }
  }
}
file == 2 && $4 == "ms" { torch[$1 " " $2] = $3 }
file == 3 && $4 == "ms" && NF == 6 {
  if (!rows++) printf "%-28s %10s %14s %15s %12s %8s\n", "operation", "size", "time", "rate", "of the limit", "PyTorch"
  limit = limit_of($1, $6)
  share = limit + 0 > 0 ? sprintf("%.0f %%", 100 * $5 / limit) : limit
  peer = torch[$1 " " $2] + 0 > 0 && $3 + 0 > 0 ? sprintf("%.2f x", torch[$1 " " $2] / $3) : "-"
  printf "%-28s %10s %11s ms %7s %-7s %12s %8s\n", $1, $2, $3, $5, $6, share, peer
}
END {
  if (!rows) { print "nothing was measured"; exit 1 }
  if (source == "") printf "limits of %s: unknown, it is not in docs/gpu/limits.txt\n", chip
  else printf "limits of %s: %s GB/s, fp32 %s and bf16 %s TFLOP/s (%s)\n", chip, memory, f32, bf16, source
  print "PyTorch: its time over ours, for the same work; above 1 we are faster"
}
