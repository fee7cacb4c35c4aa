# Everything CUDA and NCCL (preset cuda): one library, `fivecuts_cuda`, which common/comm/cuda_module.cpp opens when a
# run wants a GPU. With FIVECUTS_CUDA_LANGUAGE=CXX its sources are compiled as C++, for an emulator that supplies the
# libraries, and are linked into every program (preset emulated).
option(FIVECUTS_CUDA "build the device cuda: needs the CUDA toolkit with cuBLAS, and NCCL if it is to be used" OFF)
set(FIVECUTS_CUDA_LANGUAGE CUDA CACHE STRING "the language that compiles the .cu sources")
if(NOT FIVECUTS_CUDA)
  return()
endif()

if(FIVECUTS_CUDA_LANGUAGE STREQUAL "CUDA")
  set(FIVECUTS_CUDA_INSIDE OFF)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80 90)  # A100; H100 and H200. Later ones compile the newest of these when they start
  endif()
  if(NOT DEFINED CMAKE_CUDA_COMPILER AND EXISTS /usr/local/cuda/bin/nvcc)
    set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc)
  endif()
  enable_language(CUDA)
  set(CMAKE_CUDA_STANDARD_REQUIRED OFF)  # not every CMake knows that its nvcc has C++20: the option is given below
else()
  set(FIVECUTS_CUDA_INSIDE ON)
endif()
find_package(CUDAToolkit REQUIRED)

if(NOT TARGET NCCL::NCCL)
  find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV NCCL_ROOT PATH_SUFFIXES include)
  # Python's package of NCCL has it under the second name only.
  find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${CUDAToolkit_LIBRARY_DIR} ENV NCCL_ROOT PATH_SUFFIXES lib)
  if(NCCL_INCLUDE_DIR AND NCCL_LIBRARY)
    add_library(NCCL::NCCL UNKNOWN IMPORTED)
    set_target_properties(NCCL::NCCL PROPERTIES
      IMPORTED_LOCATION ${NCCL_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${NCCL_INCLUDE_DIR})
  else()
    message(STATUS "NCCL was not found: GPUs exchange their data by way of the host")
  endif()
endif()

# Adds the library to the rooms; called in common/, whose sources it has.
function(add_cuda_module)
  set(sources compute/cuda_backend.cu compute/cuda_elementwise.cu compute/cuda_products.cu comm/transport_nccl_module.cu)
  if(TARGET NCCL::NCCL)
    list(APPEND sources comm/transport_nccl.cu)
  endif()
  set_source_files_properties(${sources} PROPERTIES LANGUAGE ${FIVECUTS_CUDA_LANGUAGE})
  if(FIVECUTS_CUDA_INSIDE)
    add_library(fivecuts_cuda STATIC ${sources})
    target_link_libraries(fivecuts_cuda PUBLIC fivecuts_compute)
  else()
    add_library(fivecuts_cuda MODULE ${sources})
    target_link_libraries(fivecuts_cuda PRIVATE fivecuts_compute)
    target_link_options(fivecuts_cuda PRIVATE LINKER:--exclude-libs,ALL)  # its copies of the rooms are its own affair
    set_target_properties(fivecuts_cuda PROPERTIES CUDA_VISIBILITY_PRESET hidden BUILD_RPATH "${CUDAToolkit_LIBRARY_DIR}")
  endif()
  target_compile_options(fivecuts_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20 --expt-relaxed-constexpr
    --threads=2 -Xcompiler=-Wall,-Wextra$<$<BOOL:${FIVECUTS_WERROR}>: -Werror=all-warnings -Xcompiler=-Werror>>)
  target_link_libraries(fivecuts_cuda PRIVATE CUDA::cudart CUDA::cublas)
  if(TARGET NCCL::NCCL)
    target_link_libraries(fivecuts_cuda PRIVATE NCCL::NCCL)
    target_compile_definitions(fivecuts_cuda PRIVATE FIVECUTS_NCCL)
  endif()
  if(FIVECUTS_CUDA_INSIDE)
    target_compile_definitions(fivecuts_comm PRIVATE FIVECUTS_CUDA_INSIDE)
    target_link_libraries(fivecuts_comm PUBLIC fivecuts_cuda)
  else()
    target_compile_definitions(fivecuts_comm PRIVATE FIVECUTS_CUDA_MODULE="$<TARGET_FILE:fivecuts_cuda>")
    target_link_libraries(fivecuts_comm PUBLIC ${CMAKE_DL_LIBS})
    add_dependencies(fivecuts_comm fivecuts_cuda)
  endif()
endfunction()
