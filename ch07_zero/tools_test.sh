#!/bin/sh
# tools_test.sh PROGRAM: what --save and --export write, read by the safetensors package for NumPy: the weights that
# the ranks' shards hold, put together, are those of the one file. Ends with 77 where that package is not installed.
set -u
program=$1
python3 -c 'import numpy, safetensors.numpy' 2>/dev/null ||
  { echo "tools_test: skipped, since python3 finds no safetensors and numpy; pip install safetensors numpy"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'cd /; rm -rf "$work"' EXIT
cd "$work" || exit 1
"$program" --world 3 --epochs 1 --save state --export model.safetensors >log 2>&1 || { cat log; exit 1; }
python3 - state/save-1/rank-?.safetensors <<'END'
import sys
import numpy
from safetensors.numpy import load_file

model = load_file("model.safetensors")
shards = [load_file(file) for file in sys.argv[1:]]
assert len(shards) == 3
layers = len(model) // 2
for k in range(layers):
    weight, bias = model[f"layers.{k}.weight"], model[f"layers.{k}.bias"]
    assert weight.dtype == numpy.float32 and weight.ndim == 2 and weight.shape[1:] == bias.shape
    assert numpy.all(numpy.isfinite(weight)) and weight.std() > 0
    for state in "weights", "first_moment", "second_moment":
        whole = numpy.concatenate([shard[f"layers.{k}.{state}"] for shard in shards])
        assert whole.shape == (weight.size + bias.size,)
        if state == "weights":
            assert numpy.array_equal(whole, numpy.concatenate([weight.ravel(), bias]))
        else:
            assert numpy.any(whole != 0)
print(f"safetensors for NumPy reads {layers} layers, {[model[f'layers.{k}.weight'].shape for k in range(layers)]}")
END
