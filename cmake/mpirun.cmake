# Programs under mpirun as CTest entries.
find_package(MPI REQUIRED COMPONENTS CXX)

# What Open MPI 4 and 5 need to run as root and with more ranks than cores; ranks are not bound to a core,
# since each has a second thread for async(). The same list stands in `course` and in the README.
set(FIVECUTS_MPI_ENVIRONMENT
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
  OMPI_MCA_hwloc_base_binding_policy=none PRTE_MCA_hwloc_default_binding_policy=none
  OMPI_MCA_reachable=weighted)  # Open MPI 5 else complains of networks that one host does not need
if(FIVECUTS_SANITIZER)
  # Open MPI keeps some memory to the end. Its locks are not visible to the thread sanitizer, which
  # therefore looks only at what our own code does (and at what it asks of the C library).
  list(APPEND FIVECUTS_MPI_ENVIRONMENT
    LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/lsan.supp:print_suppressions=0
    TSAN_OPTIONS=ignore_noninstrumented_modules=1:halt_on_error=1:exitcode=66
    # Small stacks to watch: worlds of a thousand threads are made often.
    ASAN_OPTIONS=detect_stack_use_after_return=1:max_uar_stack_size_log=16)
endif()

if(FIVECUTS_CUDA_INSIDE)
  # The emulator's own time limit comes after the guard's, and what is not given back is a failure. A run has a GPU
  # for each rank unless a test says otherwise. CUDA_EMULATOR_SEED is yours to set.
  list(APPEND FIVECUTS_MPI_ENVIRONMENT CUDA_EMULATOR_LEAKS=1 CUDA_EMULATOR_TIMEOUT_S=100)
endif()

# Sets `kind` for add_mpi_test: of tests that run with several numbers of ranks, the odd ones run as threads.
# They start at once, and mpirun takes a second; what a program does is the same.
function(kind_of_ranks ranks kind)
  math(EXPR odd "${ranks} % 2")
  set(${kind} "")
  if(odd AND NOT FIVECUTS_CUDA_INSIDE)
    set(${kind} THREADS)
  endif()
  set(${kind} ${${kind}} PARENT_SCOPE)
endfunction()

# add_mpi_test(NAME name RANKS n [THREADS] COMMAND target|program args... [LABELS ...] [TIMEOUT seconds]
#              [EXPECT status] [OUTPUT regex [ONCE]] [ENVIRONMENT name=value...])
# THREADS: the ranks are threads of one process (--world n), without mpirun; on the cpu, so that an emulated build has
# no such test. EXPECT: the exit status that the run must end with (default 0). OUTPUT: a line that it must print, with
# ONCE exactly once.
function(add_mpi_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "ONCE;THREADS" "NAME;RANKS;TIMEOUT;EXPECT;OUTPUT"
    "COMMAND;LABELS;ENVIRONMENT")
  if(arg_THREADS AND FIVECUTS_CUDA_INSIDE AND NOT "--device" IN_LIST arg_COMMAND)
    return()
  endif()
  list(POP_FRONT arg_COMMAND program)
  if(TARGET ${program})
    set(program $<TARGET_FILE:${program}>)
  endif()
  if(arg_THREADS)
    set(command ${program} --world ${arg_RANKS} ${arg_COMMAND})
  else()
    set(command ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${arg_RANKS} ${program} ${arg_COMMAND})
  endif()
  if(DEFINED arg_EXPECT OR DEFINED arg_OUTPUT)
    if(NOT DEFINED arg_EXPECT)
      set(arg_EXPECT 0)
    endif()
    if("${arg_OUTPUT}" STREQUAL "")
      set(arg_OUTPUT -)  # CMake would drop an empty word
    endif()
    set(once)
    if(arg_ONCE)
      set(once ONCE)
    endif()
    set(command sh ${PROJECT_SOURCE_DIR}/cmake/expect.sh ${arg_EXPECT} "${arg_OUTPUT}" ${once} ${command})
  endif()
  add_test(NAME ${arg_NAME} COMMAND ${command})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  if(FIVECUTS_SANITIZER)
    math(EXPR arg_TIMEOUT "4 * ${arg_TIMEOUT}")
  endif()
  if(arg_RANKS GREATER 2)
    set(processors 2)
  else()
    set(processors ${arg_RANKS})
  endif()
  set_tests_properties(${arg_NAME} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT}
    PROCESSORS ${processors} ENVIRONMENT "${FIVECUTS_MPI_ENVIRONMENT};${arg_ENVIRONMENT}")
endfunction()
