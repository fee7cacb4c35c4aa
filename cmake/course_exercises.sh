# ./course exercises; read by ../course, whose functions and variables it uses.
# shellcheck shell=bash disable=SC2154

# Runs one exercise, already built if $built says so; sets `verdict` and `sentence`. $1: target, $2: program.
judge() {
  local ranks
  if [ "$built" = no ] && ! build --target "$1" >"$log" 2>&1; then
    verdict='does not compile' sentence=$(grep -m 1 -E 'error|undefined reference' "$log")
    return
  fi
  for ranks in 3 2 4; do  # a solution may know one number of ranks and no other
    judge_with "$ranks" "$2"
    [ "$verdict" = passed ] || break
  done
  [ "$ranks" = 3 ] || [ "$verdict" = passed ] || sentence="with $ranks ranks: $sentence"
}

# $1: ranks, $2: program.
judge_with() {
  show mpirun -n "$1" --timeout 30 "$2" >"$log" 2>&1
  case $? in
    0) verdict=passed ;;
    1) verdict='not yet' ;;
    3) verdict=hangs ;;  # the guard's
    110 | 241) verdict=hangs sentence='not at its end after 30 s: is there a loop without an end?'; return ;;  # the limit of mpirun 4, of mpirun 5
    77) verdict=blocked ;;
    139 | 134) verdict='not yet' sentence='your code wrote or read outside its memory (the run crashed); part() and copy() check'; return ;;
    *) verdict=broken ;;
  esac
  sentence=$(grep -m 1 -E "$verdict|^rank [0-9]+ of|exited on signal" "$log" || grep -m 1 '^[^-]' "$log")
}

exercises() {
  local folder file name id built verdict sentence next='' board=''
  configure
  mpi_environment 4
  for folder in ${chapter:-$(chapters)}; do
    [ -d "$folder/exercises" ] || continue
    built=yes
    build --target "${folder%%_*}_exercises" || built=no  # one that does not compile keeps no other from running
    board+="$folder"$'\n'
    for file in "$folder"/exercises/ex*.cpp; do
      name=${file##*/} name=${name%.cpp} id=${folder%%_*}_${name%%_*}
      judge "$id" "build/$folder/$id"
      board+=$(printf '  %-30s %s' "$name" "$verdict")$'\n'
      [ -n "$sentence" ] && board+="      $sentence"$'\n'
      case $verdict in
        passed | blocked) ;;
        *) : "${next:=next: $file, hints in $folder/hints.md}" ;;
      esac
    done
  done
  [ -n "$board" ] || refuse "there are no exercises in ${chapter:-this tree} yet"
  printf '\n%s%s\n' "$board" "${next:-all done}"
  [ -z "$next" ]
}
