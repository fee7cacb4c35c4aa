# add_chapter(SOURCES ... [USES chapter...] [EXERCISES exK_name...] [RANKS n...])
#
# One chapter from its folder, named as the folder is:
#   <chapter>_lib    SOURCES; links the chapters named in USES, which must come earlier
#   <chapter>        main.cpp
#   <chapter>_test   test.cpp and *_test.cpp with ranks as threads for each of RANKS (default 1 2 3 4), and under mpirun for 2 to 4
#   <chapter>_bench  bench.cpp, where Google Benchmark is installed
#   chNN_exK, chNN_exK_solution, chNN_wrong_exK_<fault>: checks/exK_*.cpp, which has the main, with
#                    exercises/exK_*.cpp, solutions/exK_*.cpp and each wrong_solutions/exK_<fault>.cpp; they may
#                    call the chapters named in USES
#   chNN.lesson      a test that runs the commands of the README.md and compares what they print
#   chNN             everything that `./course test chNN` needs
# The program and its tests never link a learner's code.
function(add_chapter)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "SOURCES;USES;EXERCISES;RANKS")
  get_filename_component(chapter ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  string(SUBSTRING ${chapter} 0 4 short)
  if(NOT arg_RANKS)
    set(arg_RANKS 1 2 3 4)
  endif()
  # Under a sanitizer or an emulator speed means nothing, and starters are not looked at.
  set(tests_only OFF)
  if(FIVECUTS_SANITIZER OR FIVECUTS_CUDA_INSIDE)
    set(tests_only ON)
  endif()

  add_library(${chapter}_lib STATIC ${arg_SOURCES})
  target_link_libraries(${chapter}_lib PUBLIC fivecuts_model)
  foreach(used IN LISTS arg_USES)
    if(NOT TARGET ${used}_lib)
      message(FATAL_ERROR "${chapter} uses ${used}, which is not in this tree or comes later")
    endif()
    target_link_libraries(${chapter}_lib PUBLIC ${used}_lib)
  endforeach()

  add_executable(${chapter} main.cpp)
  target_link_libraries(${chapter} PRIVATE ${chapter}_lib fivecuts_main)
  add_custom_target(${short} DEPENDS ${chapter})

  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/bench.cpp)
    find_package(benchmark QUIET)
    if(benchmark_FOUND)
      add_executable(${chapter}_bench bench.cpp)
      target_link_libraries(${chapter}_bench PRIVATE ${chapter}_lib fivecuts_main benchmark::benchmark)
      add_dependencies(${short} ${chapter}_bench)
      set_target_properties(${chapter}_bench PROPERTIES EXCLUDE_FROM_ALL ${tests_only})
    endif()
  endif()

  if(BUILD_TESTING)
    file(GLOB tests CONFIGURE_DEPENDS test.cpp *_test.cpp)
    add_executable(${chapter}_test ${tests})
    target_link_libraries(${chapter}_test PRIVATE ${chapter}_lib fivecuts_test_main)
    target_compile_definitions(${chapter}_test PRIVATE FIVECUTS_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    add_dependencies(${short} ${chapter}_test)
    foreach(n IN LISTS arg_RANKS)
      add_mpi_test(NAME ${short}.test.n${n}.threads RANKS ${n} THREADS COMMAND ${chapter}_test --timeout 60
                   LABELS ${short} reference)
      if(n LESS 5 AND (n GREATER 1 OR FIVECUTS_CUDA_INSIDE))
        add_mpi_test(NAME ${short}.test.n${n} RANKS ${n} COMMAND ${chapter}_test --timeout 60
                     LABELS ${short} reference)
      endif()
      if(n LESS 5 AND FIVECUTS_CUDA_INSIDE)  # where no GPU is found
        add_mpi_test(NAME ${short}.test.n${n}.none RANKS ${n} COMMAND ${chapter}_test --timeout 60
                     LABELS ${short} reference ENVIRONMENT CUDA_EMULATOR_DEVICES=0)
      endif()
      if(n GREATER 1 AND n LESS 5 AND FIVECUTS_CUDA_INSIDE)  # on a GPU that all ranks share
        add_mpi_test(NAME ${short}.test.n${n}.staged RANKS ${n} COMMAND ${chapter}_test --timeout 60
                     LABELS ${short} reference ENVIRONMENT CUDA_EMULATOR_DEVICES=1)
      endif()
    endforeach()
  endif()

  if(BUILD_TESTING AND FIVECUTS_CUDA_INSIDE)
    add_test(NAME ${short}.same_ledgers COMMAND sh ${PROJECT_SOURCE_DIR}/cmake/same_ledgers.sh ${MPIEXEC_EXECUTABLE}
             ${MPIEXEC_NUMPROC_FLAG} 3 $<TARGET_FILE:${chapter}>)
    set_tests_properties(${short}.same_ledgers PROPERTIES LABELS "${short};reference" TIMEOUT 300 PROCESSORS 2
                         ENVIRONMENT "${FIVECUTS_MPI_ENVIRONMENT}")
  endif()

  # In an emulated build these are the runs that find no GPU.
  if(BUILD_TESTING AND NOT FIVECUTS_SANITIZER AND EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/README.md)
    add_test(NAME ${short}.lesson WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
             COMMAND sh cmake/lesson.sh ${chapter}/README.md ${chapter}/README.zh.md ${CMAKE_BINARY_DIR})
    set_tests_properties(${short}.lesson PROPERTIES LABELS "${short};reference" TIMEOUT 300 PROCESSORS 2
                         ENVIRONMENT "${FIVECUTS_MPI_ENVIRONMENT}")
  endif()

  if(arg_EXERCISES AND NOT FIVECUTS_SANITIZER STREQUAL "thread")  # they have no threads of their own
    add_custom_target(${short}_exercises)
    foreach(exercise IN LISTS arg_EXERCISES)
      add_exercise(${exercise})
    endforeach()
  endif()
endfunction()

# Called by add_chapter for one exercise. What has to come out is written in the files themselves: a starter
# has one line TODO(chNN/exK), a wrong solution begins with "// expect: " and a pattern of the verdict. If it goes
# wrong with another number of ranks than 3, a line "// ranks: " says with which.
function(add_exercise exercise)
  string(REGEX MATCH "^ex[0-9]+" number ${exercise})
  set(id ${short}_${number})
  add_library(${id}_check OBJECT checks/${exercise}.cpp)
  target_link_libraries(${id}_check PUBLIC fivecuts_exercises fivecuts_model)
  foreach(used IN LISTS arg_USES)
    target_link_libraries(${id}_check PUBLIC ${used}_lib)
  endforeach()
  # The program of one file of a learner's.
  macro(exercise_program target file)
    add_executable(${target} ${file})
    target_link_libraries(${target} PRIVATE ${id}_check)
    target_compile_options(${target} PRIVATE -Wno-unused-parameter)
  endmacro()
  exercise_program(${id} exercises/${exercise}.cpp)
  add_dependencies(${short}_exercises ${id})
  if(tests_only)
    set_target_properties(${id} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  if(NOT BUILD_TESTING)
    return()
  endif()
  add_dependencies(${short} ${id})

  exercise_program(${id}_solution solutions/${exercise}.cpp)
  add_dependencies(${short} ${id}_solution)
  foreach(n IN LISTS arg_RANKS)
    kind_of_ranks(${n} kind)
    if(NOT tests_only)
      add_mpi_test(NAME ${short}.${number}.starter.n${n} RANKS ${n} ${kind} COMMAND ${id} EXPECT 1
                   OUTPUT "not yet.*TODO[(]${short}/${number}[)]" LABELS ${short} exercise TIMEOUT 60)
    endif()
    add_mpi_test(NAME ${short}.${number}.solution.n${n} RANKS ${n} ${kind} COMMAND ${id}_solution EXPECT 0
                 OUTPUT "passed" LABELS ${short} solution TIMEOUT 60)
  endforeach()

  if(FIVECUTS_SANITIZER OR FIVECUTS_CUDA_INSIDE)
    return()  # the verdicts are the same; what they run is checked with the solutions
  endif()
  file(GLOB wrong RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS wrong_solutions/${number}_*.cpp)
  foreach(file IN LISTS wrong)
    get_filename_component(fault ${file} NAME_WE)
    set(target ${short}_wrong_${fault})
    exercise_program(${target} ${file})
    add_dependencies(${short} ${target})
    file(STRINGS ${file} expect LIMIT_COUNT 1 REGEX "^// expect: ")
    string(REPLACE "// expect: " "" expect "${expect}")
    file(STRINGS ${file} ranks LIMIT_COUNT 1 REGEX "^// ranks: [0-9]+$")
    string(REGEX REPLACE "^// ranks: " "" ranks "${ranks}")
    if(NOT ranks)
      set(ranks 3)
    endif()
    add_mpi_test(NAME ${short}.wrong.${fault} RANKS ${ranks} THREADS COMMAND ${target} EXPECT nonzero OUTPUT "${expect}"
                 LABELS ${short} solution TIMEOUT 60)
  endforeach()
endfunction()
