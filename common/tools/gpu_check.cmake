# What docs/gpu-check.md runs, as far as it can be tested without a GPU: measure_gpu over the emulator, its refusal of
# any other device, and the table.
foreach(device cpu meta)
  add_mpi_test(NAME tools.measure_gpu.${device} RANKS 1 COMMAND measure_gpu --device ${device} EXPECT 2 ONCE
               OUTPUT "measures GPUs, and this run is on ${device}; .*try: measure_gpu --device cuda" LABELS tools)
endforeach()
