#!/usr/bin/env bash
# All checks of a GPU in one run of at most eight minutes: programs, the driver, graphs, DLPack, compute-sanitizer, figures.
#
#     benchmarks/gpu_check.sh                      # on a machine with a GPU, from a checkout
#     benchmarks/gpu_check.sh --simulated          # the same steps on the simulator
#     PYTHON=venv/bin/python OUT=results benchmarks/gpu_check.sh
#     PROGRAMS=k.hlo TESTS=-kelementwise ONLY=add benchmarks/gpu_check.sh --simulated     # parts of each step
#
# Each step has its seconds, and no more than are left of eight minutes; what it printed is in $OUT/STEP.log. The exit
# status is the number of steps that failed.
# docs/gpu.md has the commands that install pycuda; JAX, cuBLAS, PyTorch and CuPy take part where they are installed.
set -u
cd "$(dirname "$0")/.." || exit 1
PYTHON=${PYTHON:-python}
OUT=${OUT:-gpu_check}
GPU=cuda
BENCHMARK=(--json="$OUT/figures.json" --rounds=3)
if [ "${1:-}" = --simulated ]; then
  GPU=h100
  BENCHMARK+=(--simulated "--only=${ONLY:-add,softmax,transpose,product bf16 4096,attention}")
fi
mkdir -p "$OUT"
failed=0

step() { # step NAME SECONDS COMMAND...
  local name=$1 seconds=$2 start=$SECONDS status
  local left=$((480 - SECONDS))
  shift 2
  if [ $left -lt "$seconds" ]; then seconds=$((left > 1 ? left : 1)); fi
  timeout "$seconds" "$@" >"$OUT/$name.log" 2>&1
  status=$?
  if [ $status -eq 0 ]; then
    echo "ok      $name ($((SECONDS - start)) s)"
  else
    echo "failed  $name ($((SECONDS - start)) s, status $status): $(tail -1 "$OUT/$name.log")"
    failed=$((failed + 1))
  fi
}

left_out() { echo "left    $1: $2"; }

programs() { # in one process
  "$PYTHON" -m mlirhlo.cli.run_hlo_module --fake_constants --platform=CUDA --gpu="$GPU" $PROGRAMS
}

sanitized() { # sanitized TOOL
  compute-sanitizer --tool "$1" --error-exitcode 9 "$PYTHON" -m mlirhlo.cli.run_hlo_module \
    --platform=CUDA --gpu="$GPU" --reference_platform= $SANITIZED
}

PROGRAMS=${PROGRAMS:-$(echo test/lit/lowering/gpu/{one_kernel,softmax,reduce_sum}.hlo) \
  test/data/dumps/gpu/module_0001.jit_mlp.sm_9.0a_gpu_after_optimizations.txt}
SANITIZED=test/lit/lowering/gpu/softmax.hlo
export PYTHON GPU PROGRAMS SANITIZED PYTHONPATH=$PWD
export -f programs sanitized

if [ "$GPU" = cuda ]; then
  step machine 20 nvidia-smi
  step pycuda 20 "$PYTHON" -c "import pycuda.driver as d; d.init(); print(d.Device(0).name(), d.get_driver_version())"
fi
step programs 90 bash -c programs
step drivers 120 "$PYTHON" -m pytest -q -p no:cacheprovider -n 0 test/unit/runtime/test_gpu_drivers.py ${TESTS:-}
if [ "$GPU" != cuda ]; then
  left_out compute-sanitizer "there is no card; the simulator's checks were on"
elif command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck synccheck; do step "sanitizer_$tool" 40 bash -c "sanitized $tool"; done
else
  left_out compute-sanitizer "it is not installed"
fi
step benchmark 180 "$PYTHON" benchmarks/gpu.py "${BENCHMARK[@]}"
cat "$OUT/benchmark.log"
exit $failed
