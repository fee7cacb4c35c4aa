# The preset `simulated`: messages go over SMPI, SimGrid's MPI, instead of a real one. Stands in for mpirun.cmake.
# Ranks are then threads of a simulator, which knows when each message would be there. Built are only the rooms and
# the tools; where SimGrid is missing, nothing.
find_path(SIMGRID_INCLUDE smpi/smpi.h)
find_library(SIMGRID_LIBRARY simgrid)
find_program(SIMGRID_SMPIRUN smpirun)
if(NOT (SIMGRID_INCLUDE AND SIMGRID_LIBRARY AND SIMGRID_SMPIRUN))
  message(STATUS "skipped: SimGrid is not installed (Debian: libsimgrid-dev)")
  set(FIVECUTS_SIMULATED_SKIPPED TRUE)
  return()
endif()

add_library(MPI::MPI_CXX INTERFACE IMPORTED)
# smpi/ has an mpi.h of its own. The compiler wrapper smpicxx does no more than this, besides replacing malloc() and
# the like by macros, which std::free() does not survive.
target_include_directories(MPI::MPI_CXX SYSTEM INTERFACE ${SIMGRID_INCLUDE}/smpi ${SIMGRID_INCLUDE})
target_link_libraries(MPI::MPI_CXX INTERFACE ${SIMGRID_LIBRARY})
# smpirun loads the program once for each rank, as a shared library.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
