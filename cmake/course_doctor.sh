# ./course doctor; read by ../course, whose functions it uses.
# shellcheck shell=bash disable=SC2154

row() { printf '  %-22s %s\n' "$1" "$2"; }

# A tool, its version ($2, from its own words), the least that will do ($3); counts what is not enough.
tool() {
  local version
  version=$(echo "$2" | grep -oE '[0-9]+(\.[0-9]+)+' | head -n 1)
  if [ -z "$version" ]; then
    row "$1" "MISSING (at least $3)"
  elif [ "$(printf '%s\n' "$3" "$version" | sort -V | head -n 1)" != "$3" ]; then
    row "$1" "$version is TOO OLD (at least $3)"
  else
    row "$1" "$version" && return
  fi
  lacking=$((lacking + 1))
}

doctor() {
  local lacking=0 package version missing
  echo 'needed'
  tool "${CXX:-g++}" "$("${CXX:-g++}" -dumpfullversion -dumpversion 2>/dev/null | sed 's/^[0-9]*$/&.0/')" 11.0
  tool cmake "$(cmake --version 2>/dev/null)" 3.22
  tool 'mpirun (Open MPI)' "$(mpirun --version 2>/dev/null | grep 'Open MPI\|OpenRTE')" 4.1
  have ninja || tool make "$(make --version 2>/dev/null)" 4.0
  for package in $libraries; do
    version=$(dpkg-query -W -f '${db:Status-Status} ${Version}' "$package" 2>/dev/null)
    row "$package" "$(case $version in installed*) echo "${version#* }" ;; *) echo 'not among the packages' ;; esac)"
  done
  echo 'used if there'
  row ninja "$(ninja --version 2>/dev/null || echo 'no: make is used')"
  row 'CUDA toolkit' "$("$(nvcc_path)" --version 2>/dev/null | sed -n 's/.*release //p' | grep . || echo no)"
  row NCCL "$(cat /usr/include/nccl.h /usr/local/cuda/include/nccl.h 2>/dev/null |
    sed -n 's/^#define NCCL_\(MAJOR\|MINOR\|PATCH\) //p' | head -n 3 | paste -sd . - | grep . || echo no)"
  row GPUs "$(gpus)"
  echo 'a run here'
  row machine "$(cores) cores, $(is_root && echo 'as root' || echo 'not as root')"
  row ranks '4, unless you say -n N'
  row preset "$preset: $why_preset"
  mpi_environment 4
  if [ -x build/common/tools/which_device ]; then
    row 'device, transport' "$(mpirun -n 4 build/common/tools/which_device 2>&1 | tail -n 1)"
  else
    row 'device, transport' 'known once something is built: ./course run'
  fi
  missing=$(missing_packages)
  if [ -z "$missing" ] && [ $lacking = 0 ]; then echo 'enough for everything: ./course run'; return 0; fi
  [ -n "$missing" ] && printf '%s\n' 'missing; ./course run installs it, or as root:' "$(install_line "$missing")"
  return 1
}
