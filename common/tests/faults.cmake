# How a run ends that goes wrong: the status of mpirun and a line that must be printed. Included by the
# CMakeLists.txt beside it.
add_executable(faults faults.cpp)
target_link_libraries(faults PRIVATE fivecuts_main)
add_dependencies(common_test faults)  # `./course test ch02` builds no more of common/ than common_test

# What a fault prints does not depend on what the ranks are: each is run under mpirun and with ranks as
# threads, but for those that are the end of a process.
# fault(name ranks status regex [more arguments of the program...]): the line is printed once, not by each
# rank. A ';' in it is written '.', since CMake would take it for the end of a word.
function(fault name ranks status regex)
  set(arguments ${ARGN})
  if(FIVECUTS_CUDA AND NOT FIVECUTS_CUDA_INSIDE)
    list(APPEND arguments --device cpu)  # a real GPU takes longer than these time limits to start
  endif()
  set(once)
  if(regex)
    set(once ONCE)
  endif()
  add_mpi_test(NAME common.fault.${name} RANKS ${ranks} COMMAND faults --timeout 2 --fault ${name} ${arguments}
               EXPECT ${status} OUTPUT "${regex}" ${once} LABELS common reference TIMEOUT 30)
  if(regex)
    add_mpi_test(NAME common.fault.${name}.threads RANKS ${ranks} THREADS
                 COMMAND faults --timeout 2 --fault ${name} ${arguments}
                 EXPECT ${status} OUTPUT "${regex}" ${once} LABELS common reference TIMEOUT 30)
  endif()
endfunction()
# refused(name regex arguments...): by every rank alike, said once. Before the ranks are there, so that most of
# these run one process; of the sort that is refused by ranks, under mpirun.
function(refused name regex)
  if(FIVECUTS_CUDA_INSIDE)
    return()  # before any device is looked for
  endif()
  set(kind THREADS)
  if(name MATCHES "^(unknown_flag|zero_count|ranks|world_under_mpirun)$")
    set(kind)
  endif()
  add_mpi_test(NAME common.refused.${name} RANKS 3 ${kind} COMMAND faults ${ARGN}
               EXPECT 2 OUTPUT "^faults: ${regex}" ONCE LABELS common reference TIMEOUT 30)
endfunction()

refused(unknown_flag "there is no flag '--cuont'. possible are: .*--count .*--help" --cuont 3)
refused(stray_word "there is no flag 'three'" three)
refused(missing_value "--count.* --help" --count)
refused(missing_memory "--memory.* --help" --memory)
refused(zero_count "--count: '0' is not possible. give a whole number from 1" --count 0)
refused(negative_count "--count: '-4' is not possible" --count=-4)
refused(large_count "--count: '1001' is not possible" --count 1001)
refused(no_count "--count: '3x' is not possible" --count 3x)
refused(fraction "--count: '2.5' is not possible" --count 2.5)
refused(huge_count "--count: '99999999999999999999' is not possible" --count 99999999999999999999)
refused(memory_unit "'80GO' is no amount of memory. .*--memory 80GB" --memory 80GO)
refused(memory_zero "'0' is no amount of memory" --memory 0)
refused(memory_negative "'-1GB' is no amount of memory" --memory=-1GB)
refused(timeout_zero "--timeout: '0' is not possible. give a number above 0" --timeout 0)
refused(timeout_nan "--timeout: 'nan' is not possible" --timeout nan)
refused(timeout_word "--timeout: 'soon' is not possible" --timeout soon)
refused(world_zero "--world: .0. is not possible. give a whole number from 1 to 4096, as in --world 4" --world 0)
refused(world_absurd "--world: .100000. is not possible" --world 100000)
refused(world_word "--world: .many. is not possible" --world many)
refused(world_under_mpirun "--world 2 starts its ranks as threads of one process, and mpirun has started 3" --world 2)
refused(unknown_device "--device.* --help" --device gpu)
refused(unknown_cluster "there is no cluster .h1000.: it is neither a file nor one of a100, h100, laptop" --cluster h1000)
refused(cluster_folder "there is no cluster ./tmp." --cluster /tmp)
refused(cluster_no_json "cluster file .*/faults.cmake: it is no JSON" --cluster ${CMAKE_CURRENT_SOURCE_DIR}/faults.cmake)
refused(unknown_fault "--fault" --fault nonesuch)
refused(ranks "3 ranks are not possible. try: mpirun -n 99 faults" --fault refuses_everywhere)

fault(none 4 0 "^went well$")
if(FIVECUTS_CUDA_INSIDE)  # a message that is small enough is buffered by MPI, and none is by NCCL
  fault(small_sends_first 2 3 "^rank 1 of 2: .*waiting for rank 0 to receive 10 x f32 on 'world'$")
else()
  fault(small_sends_first 2 0 "^went well$")
endif()
fault(status 3 1 "^went well$")
fault(out_of_memory 3 1 "^rank 2 of 3: out of memory: 4 MB for gradient .*in use: parameter 400 B" --memory 1MB)
if(NOT FIVECUTS_SANITIZER)  # under which such a request ends the process
  fault(more_than_there_is 3 1
        "^rank 2 of 3: out of memory: the (machine|GPU) has no 1.153e.06 TB more for gradient .in use: parameter 400 B.$")
endif()
fault(never_comes 3 3 "^rank 0 of 3: no progress for 2 s.*: waiting for rank 2 at split into 'group' on 'world'$")
fault(throws_alone 3 1 "^rank 2 of 3: the disk is full .common/tests/faults.cpp:[0-9]+.$")
fault(throws_alone_in_async 3 1 "^rank 2 of 3: the stream ran dry")
fault(throws_in_a_message 3 1 "^rank 2 of 3: lost its way")
fault(throws_everywhere 4 1 "^rank 0 of 4: the same everywhere")
fault(throws_no_exception 2 1 "^rank 1 of 2: something was thrown that is no std::exception")
fault(peer_out_of_range 2 1 "^rank 0 of 2: rank 2 was named as a peer on 'world', whose ranks are 0 to 1")
fault(refuses_alone 3 3 "the ranks of 'world' disagree: rank 0 came to all_reduce of 5 x f32, rank 2 to ")
fault(killed 3 nonzero "")
fault(crashes 3 nonzero "")
fault(aborts 2 nonzero "")
fault(leaves_the_process 3 nonzero "")
add_mpi_test(NAME common.fault.exits.threads RANKS 3 THREADS
             COMMAND faults --timeout 2 --fault exits
             EXPECT 1 OUTPUT "^a rank ended the process while others were running$" ONCE
             LABELS common reference TIMEOUT 30)

set(all_reduce "rank 0 came to all_reduce of 24 x f32")
fault(skipped_collective 4 3 "'world' disagree: ${all_reduce}, rank 3 to broadcast of 7 x f32 from rank 0")
fault(skipped_collective_in_group 4 3 "'tail' disagree: ${all_reduce}, rank 2 to broadcast of 7 x f32")
fault(skipped_collective_in_async 3 3 "'world' disagree: ${all_reduce}, rank 2 to broadcast of 7 x f32")
fault(other_count 3 3 "'world' disagree: ${all_reduce}, rank 2 to all_reduce of 25 x f32")
fault(other_type 2 3 "'world' disagree: ${all_reduce}, rank 1 to all_reduce of 24 x i64")
fault(other_reduction 2 3 "'world' disagree: ${all_reduce}, rank 1 to all_reduce of 24 x f32 .max.")
fault(other_root 3 3 "came to broadcast of 24 x f32 from rank 0, rank 2 to broadcast of 24 x f32 from rank 1")
fault(other_group 2 3 "rank 0 came to split into 'dp', rank 1 to split into 'tp'")
fault(swapped_collectives 3 3 "'world' disagree: ${all_reduce}, rank 2 to reduce_scatter of 24 x f32")
fault(collective_against_message 2 3 "waits for 24 x f32 from rank 1, which came to all_reduce of 24 x f32")
fault(leaves_early 3 3 "'world' disagree: ${all_reduce}, rank 2 to the end of its run")

fault(message_count 3 3 "rank 1 of 'world' waits for 4 x f32 from rank 0, which came to send of 5 x f32")
fault(message_type 2 3 "rank 1 of 'world' waits for 2 x i64 from rank 0, which came to exchange of 4 x f32")
fault(never_received 3 3 "rank 0 came to the end of its run, rank 2 to send of 5 x f32")
fault(never_sent 3 3 "^rank 2 of 3: no progress for 2 s.*: waiting for a message: 5 x f32 from rank 0 on 'world'")
# Which of the two waits began first is the threads' affair.
fault(never_sent_in_async 2 3 "(started with async.. on 'world'. and .*5 x f32 from rank 0|5 x f32 from rank 0.*started with async)")
fault(large_sends_first 2 3 "^rank 1 of 2: .*waiting for rank 0 to receive 1048576 x f32 on 'world'$")
fault(both_receive_first 3 3 "^rank 0 of 3: .*waiting for a message: 10 x f32 from rank 1 on 'world'$")

# --- GPUs ---

# gpu_fault(name devices ranks status regex [more arguments...]): on a machine with so many.
function(gpu_fault name devices ranks status regex)
  add_mpi_test(NAME common.fault.gpu.${name} RANKS ${ranks} COMMAND faults --timeout 2 ${ARGN} EXPECT ${status}
               OUTPUT "${regex}" ONCE LABELS common reference TIMEOUT 30
               ENVIRONMENT CUDA_EMULATOR_DEVICES=${devices} CUDA_EMULATOR_MEMORY_MB=64)
endfunction()

if(NOT FIVECUTS_CUDA)
  refused(no_cuda "--device cuda is not possible: rank 0 finds no GPU: this build has no CUDA. try: --device cpu, or a build" --device cuda)
elseif(FIVECUTS_CUDA_INSIDE)
  set(none "rank 0 finds no GPU: no CUDA-capable device is detected")
  gpu_fault(none_is_said 0 3 0 "^device cpu, transport mpi: ${none}$" --fault none)
  gpu_fault(none_is_refused 0 3 2 "^faults: --device cuda is not possible: ${none}. try: --device cpu$" --device cuda --fault none)
  gpu_fault(shared 2 3 0 "^device cuda, transport staged, .*: 3 ranks on 2 GPUs .*. NCCL takes one rank on a GPU$" --fault none)
  gpu_fault(each_its_own 3 3 0 "^device cuda, transport nccl: 3 ranks on 3 GPUs .*. a GPU for each rank$" --fault none)
  gpu_fault(threads_share 8 1 0 "^device cuda, transport staged, .*. NCCL wants a process for each rank$"
            --world 2 --device cuda --fault none)
  gpu_fault(small_sends_staged 1 2 0 "^went well$" --fault small_sends_first)
  gpu_fault(large_sends_staged 1 2 3 "^rank 1 of 2: .*waiting for rank 0 to receive 1048576 x f32 on 'world'$" --fault large_sends_first)
  gpu_fault(broken_kernel 8 3 nonzero "rank 2: ERROR: illegal address in kernel" --fault broken_kernel)
  gpu_fault(out_of_memory 8 2 1 "^rank 1 of 2: out of memory: the GPU has no 1.153e.06 TB more for gradient" --fault more_than_there_is)
  add_mpi_test(NAME common.fault.gpu.busy RANKS 1 COMMAND faults --fault busy --timeout 1 EXPECT 0
               OUTPUT "^went well$" ONCE LABELS common reference TIMEOUT 60)
  add_mpi_test(NAME common.fault.gpu.busy_in_async RANKS 2 COMMAND faults --fault busy_in_async --timeout 2 EXPECT 0
               OUTPUT "^went well$" ONCE LABELS common reference TIMEOUT 60 ENVIRONMENT CUDA_EMULATOR_DEVICES=1)
  add_mpi_test(NAME common.fault.gpu.no_memory_for_nccl RANKS 2 COMMAND faults --fault none EXPECT 1
               OUTPUT "^rank 0 of 2: out of memory: the GPU has none left to start NCCL with$" ONCE
               LABELS common reference TIMEOUT 30 ENVIRONMENT CUDA_EMULATOR_MEMORY_MB=0)

  add_executable(faults_injected faults.cpp ../comm/transport_nccl_faults.cpp)
  target_link_libraries(faults_injected PRIVATE fivecuts_main CUDA::cudart NCCL::NCCL)
  target_link_options(faults_injected PRIVATE LINKER:--wrap=cudaEventQuery,--wrap=ncclCommGetAsyncError,--wrap=ncclAllReduce
                      LINKER:--wrap=ncclCommInitRankConfig,--wrap=ncclCommSplit)
  # injected(name status regex [fault]): on rank 2 of 3
  function(injected name status regex)
    add_mpi_test(NAME common.fault.gpu.${name} RANKS 3 COMMAND faults_injected --timeout 2 --fault none EXPECT ${status}
                 OUTPUT "${regex}" ONCE LABELS common reference TIMEOUT 30
                 ENVIRONMENT CUDA_EMULATOR_LEAKS=0 "FIVECUTS_INJECT=${name} 2")
  endfunction()
  injected(kernel_error 1 "^rank 2 of 3: cudaEventQuery.* failed: .*a kernel failed that was started earlier")
  injected(nccl_async_error 1 "^rank 2 of 3: communication under way failed: remote process")
  injected(nccl_start_error 1 "^rank 2 of 3: making a communicator of NCCL failed: unhandled cuda error")
  injected(nccl_start_late 3 "^rank 0 of 3: no progress for 2 s.*: waiting for the others to start NCCL$")
  injected(nccl_split_late 3 "^rank 0 of 3: no progress for 2 s.*: waiting for the others to form 'world'$")
  add_mpi_test(NAME common.fault.gpu.one_each_by_slurm RANKS 3 COMMAND sh -c
               "CUDA_VISIBLE_DEVICES=\$OMPI_COMM_WORLD_RANK exec \"$<TARGET_FILE:faults>\" --fault none"
               OUTPUT "^device cuda, transport nccl: 3 ranks on 3 GPUs" ONCE LABELS common reference TIMEOUT 30)
else()  # a real build, whose GPUs, if there are any, are hidden from these
  set(none "rank 0 finds no GPU: (there is no NVIDIA driver|no CUDA-capable device|.*driver)")
  add_mpi_test(NAME common.fault.gpu.none_is_said RANKS 3 COMMAND faults --fault none EXPECT 0
               OUTPUT "^device cpu, transport mpi: ${none}" ONCE LABELS common reference cuda TIMEOUT 30
               ENVIRONMENT CUDA_VISIBLE_DEVICES=)
  add_mpi_test(NAME common.fault.gpu.none_is_refused RANKS 3 COMMAND faults --device cuda EXPECT 2
               OUTPUT "^faults: --device cuda is not possible: ${none}" ONCE LABELS common reference cuda TIMEOUT 30
               ENVIRONMENT CUDA_VISIBLE_DEVICES=)
  # A module that lacks a symbol could not be opened; a driver is not needed to see that.
  add_test(NAME common.cuda.module COMMAND sh -c "ldd -r '$<TARGET_FILE:fivecuts_cuda>'")
  set_tests_properties(common.cuda.module PROPERTIES LABELS "common;reference;cuda" TIMEOUT 30
                       FAIL_REGULAR_EXPRESSION "undefined symbol|not found")
endif()
