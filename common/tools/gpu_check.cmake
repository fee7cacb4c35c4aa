# What docs/gpu-check.md runs, as far as it can be tested without a GPU: measure_gpu over the emulator and its refusal
# of any other device, and docs/gpu_check itself on a machine that only pretends.
foreach(device cpu meta)
  add_mpi_test(NAME tools.measure_gpu.${device} RANKS 1 COMMAND measure_gpu --device ${device} EXPECT 2
               OUTPUT "measures GPUs, and this run is on ${device}..*try: measure_gpu --device cuda" ONCE LABELS tools)
endforeach()
if(FIVECUTS_CUDA_INSIDE)
  set(tiny --elements 1000 --size 16 --rounds 2 --message 64KB)
  add_mpi_test(NAME tools.measure_gpu.n1 RANKS 1 COMMAND measure_gpu ${tiny} LABELS tools
               OUTPUT "^add_transposed_product_bf16 +16 +[0-9.e+-]+ ms +[0-9.e+-]+ TFLOP/s$" ONCE)
  set(last_line "^all_reduce_f32 +16000 +[0-9.e+-]+ ms +[0-9.e+-]+ GB/s$")
  add_mpi_test(NAME tools.measure_gpu.n2 RANKS 2 COMMAND measure_gpu ${tiny} LABELS tools OUTPUT "${last_line}" ONCE)
  add_mpi_test(NAME tools.measure_gpu.n2.staged RANKS 2 COMMAND measure_gpu ${tiny} LABELS tools OUTPUT "${last_line}"
               ONCE ENVIRONMENT CUDA_EMULATOR_DEVICES=1)
elseif(NOT FIVECUTS_SANITIZER AND EXISTS ${PROJECT_SOURCE_DIR}/ch02_data_parallel)
  add_test(NAME tools.gpu_check COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/gpu_check_test.sh)
  set_tests_properties(tools.gpu_check PROPERTIES LABELS tools TIMEOUT 120)
endif()
