# Under the preset `simulated`: the chapter's algorithms over SimGrid's MPI, beside the clock. Both must bring them
# into the same order, and long messages must take the same time within 25 %.
set(sources simulated.cpp all_reduce.cpp beyond/tree.cpp beyond/halving_doubling.cpp beyond/hierarchical.cpp
    beyond/shared.cpp beyond/library.cpp algorithms.cpp traffic_formulas.cpp time_formulas.cpp replay.cpp)
list(TRANSFORM sources PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
set(folder ${CMAKE_BINARY_DIR}/ch03_allreduce)
add_executable(algorithms ${sources})
add_library(algorithms_smpi MODULE ${sources})
foreach(target IN ITEMS algorithms algorithms_smpi)
  target_link_libraries(${target} PRIVATE fivecuts_main)
  set_target_properties(${target} PROPERTIES PREFIX "" RUNTIME_OUTPUT_DIRECTORY ${folder}
                        LIBRARY_OUTPUT_DIRECTORY ${folder})
endforeach()

# algorithms_test(RANKS SIZE LIMIT ALGORITHMS...): on the network `slow`, within LIMIT percent.
function(algorithms_test ranks size limit)
  string(REPLACE ";" "," algorithms "${ARGN}")
  add_test(NAME simulated.ch03.n${ranks}.${size}
           COMMAND sh ${PROJECT_SOURCE_DIR}/common/tools/compare_clock.sh ${CMAKE_BINARY_DIR}/common/tools slow
                   ${algorithms} ${ranks} ${size})
  set_tests_properties(simulated.ch03.n${ranks}.${size} PROPERTIES LABELS simulated TIMEOUT 600
                       ENVIRONMENT "LIMIT=${limit};PROGRAM=${folder}/algorithms")
endfunction()
set(chunked ring tree halving_doubling hierarchical)
algorithms_test(4 16MB 25 gather_broadcast full_exchange ${chunked})
algorithms_test(16 4MB 25 gather_broadcast full_exchange ${chunked})
algorithms_test(64 256KB 25 gather_broadcast full_exchange ${chunked})
algorithms_test(64 4MB 25 gather_broadcast ${chunked})
algorithms_test(256 1MB 25 gather_broadcast ${chunked})
# Of short messages the order alone: in SimGrid each send waits for its receive, a latency for each of the root's.
algorithms_test(256 16KB 1000 gather_broadcast ${chunked})  # full_exchange takes SimGrid minutes there

# The test of the test: with a hundred times the latency the clock's order is another.
file(READ ${PROJECT_SOURCE_DIR}/common/observe/clusters/slow.json profile)
string(REPLACE "\"value\": 5e-05" "\"value\": 5e-03" late "${profile}")
if(late STREQUAL profile)
  message(FATAL_ERROR "slow.json has another latency than this test takes it to have")
endif()
file(WRITE ${folder}/late.json "${late}")
add_test(NAME simulated.ch03.notices_another_order
         COMMAND sh ${PROJECT_SOURCE_DIR}/cmake/expect.sh 1 "^another ORDER: by the clock ring takes longer than gather_"
                 sh ${PROJECT_SOURCE_DIR}/common/tools/compare_clock.sh ${CMAKE_BINARY_DIR}/common/tools slow
                 gather_broadcast,ring 16 4MB)
set_tests_properties(simulated.ch03.notices_another_order PROPERTIES LABELS simulated TIMEOUT 60
                     ENVIRONMENT "CLOCK_CLUSTER=${folder}/late.json;LIMIT=1000;PROGRAM=${folder}/algorithms")
