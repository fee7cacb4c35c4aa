# Under the preset `simulated`: the chapter's algorithms over SimGrid's MPI, beside the clock. Both must bring them
# into the same order, and long messages must take the same time within 25 %.
set(sources simulated.cpp all_reduce.cpp beyond/tree.cpp beyond/halving_doubling.cpp beyond/hierarchical.cpp
    beyond/library.cpp algorithms.cpp traffic_formulas.cpp time_formulas.cpp)
list(TRANSFORM sources PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
set(folder ${CMAKE_BINARY_DIR}/ch03_allreduce)
add_executable(algorithms ${sources})
add_library(algorithms_smpi MODULE ${sources})
foreach(target IN ITEMS algorithms algorithms_smpi)
  target_link_libraries(${target} PRIVATE fivecuts_main)
  set_target_properties(${target} PROPERTIES PREFIX "" RUNTIME_OUTPUT_DIRECTORY ${folder}
                        LIBRARY_OUTPUT_DIRECTORY ${folder})
endforeach()

# algorithms_test(RANKS SIZE ALGORITHMS...): on the network `slow`.
function(algorithms_test ranks size)
  string(REPLACE ";" "," algorithms "${ARGN}")
  add_test(NAME simulated.ch03.n${ranks}.${size}
           COMMAND sh ${PROJECT_SOURCE_DIR}/common/tools/compare_clock.sh ${CMAKE_BINARY_DIR}/common/tools slow
                   ${algorithms} ${ranks} ${size})
  set_tests_properties(simulated.ch03.n${ranks}.${size} PROPERTIES LABELS simulated TIMEOUT 600
                       ENVIRONMENT "LIMIT=25;PROGRAM=${folder}/algorithms")
endfunction()
set(chunked ring tree halving_doubling hierarchical)
algorithms_test(4 16MB gather_broadcast full_exchange ${chunked})
algorithms_test(16 4MB gather_broadcast full_exchange ${chunked})
algorithms_test(64 256KB gather_broadcast full_exchange ${chunked})
algorithms_test(64 4MB gather_broadcast ${chunked})
algorithms_test(256 1MB gather_broadcast ${chunked})
