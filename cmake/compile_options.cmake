# What every target is compiled with: link `fivecuts_options`.
include(CheckCXXCompilerFlag)
add_library(fivecuts_options INTERFACE)
target_include_directories(fivecuts_options INTERFACE ${PROJECT_SOURCE_DIR})
set(options
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wold-style-cast
  # False alarms of GCC 12 and 13 in its own headers (bugs 105593 and 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  # The square root of Adam and the comparisons of GELU become vector code. Values do not change: unlike
  # -ffast-math, neither flag lets the compiler reorder sums or assume that there is no NaN.
  -fno-math-errno -fno-trapping-math)
if(FIVECUTS_WERROR)
  list(APPEND options -Werror)
endif()
if(FIVECUTS_NATIVE)
  check_cxx_compiler_flag(-march=native FIVECUTS_HAS_MARCH_NATIVE)
  if(FIVECUTS_HAS_MARCH_NATIVE)
    list(APPEND options -march=native)
  endif()
endif()
target_compile_options(fivecuts_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${options}>")  # nvcc has its own: cuda.cmake
if(FIVECUTS_SANITIZER STREQUAL "address")
  set(flags -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
elseif(FIVECUTS_SANITIZER STREQUAL "thread")
  set(flags -fsanitize=thread -fno-omit-frame-pointer)
elseif(NOT FIVECUTS_SANITIZER STREQUAL "")
  message(FATAL_ERROR "FIVECUTS_SANITIZER is '${FIVECUTS_SANITIZER}'; it can be empty, address or thread")
endif()
if(FIVECUTS_SANITIZER AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND flags -Wno-uninitialized)  # the same false alarms; they come with the sanitizers only
endif()
if(FIVECUTS_SANITIZER)
  target_compile_definitions(fivecuts_options INTERFACE _GLIBCXX_ASSERTIONS)  # of the standard library's own rules
endif()
target_compile_options(fivecuts_options INTERFACE ${flags})
target_link_options(fivecuts_options INTERFACE ${flags})
find_package(Threads REQUIRED)
target_link_libraries(fivecuts_options INTERFACE Threads::Threads)
