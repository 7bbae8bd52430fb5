#!/usr/bin/env python3
"""Writes mlirhlo/integrations/tensorflow/clustering/ops.toml; needs TensorFlow, which nothing else does.

    python3 -m venv tf && tf/bin/pip install tensorflow-cpu -e .
    tf/bin/python tools/make_tensorflow_op_table.py

What TensorFlow's registries say of the operations that XLA compiles on CPUs: their arguments, the
element types of each attribute that a kernel takes, and which operations are stateful; and which arguments and
results TensorFlow's own kernels on CPUs have in host memory.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import tensorflow as tf
from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import (
    kernels,  # pyright: ignore[reportAttributeAccessIssue]
    op_def_registry,  # pyright: ignore[reportAttributeAccessIssue]
)

OUT = Path(__file__).resolve().parent.parent / "mlirhlo/integrations/tensorflow/clustering/ops.toml"


def type_name(number: Any) -> str:
    """`float` of DT_FLOAT."""
    return types_pb2.DataType.Name(number).removeprefix("DT_").lower()


def argument(arg: Any) -> str:
    """`tensor:T`, `values:N*T`, `args:*Tin`, `resource:=resource` (a fixed type)."""
    if arg.type_list_attr:
        return f"{arg.name}:*{arg.type_list_attr}"
    kind = arg.type_attr or f"={type_name(arg.type)}"
    return f"{arg.name}:{arg.number_attr}*{kind}" if arg.number_attr else f"{arg.name}:{kind}"


def host_memory() -> list[str]:
    """A row for each operation with arguments or results in host memory."""
    named: dict[str, set[str]] = {}
    for kernel in kernels.get_all_registered_kernels().kernel:
        if kernel.device_type == "CPU" and kernel.host_memory_arg:
            named.setdefault(kernel.op, set()).update(kernel.host_memory_arg)
    rows: list[str] = []
    for op in sorted(named):
        if (definition := op_def_registry.get(op)) is not None:
            inputs = " ".join(map(argument, definition.input_arg))
            outputs = " ".join(map(argument, definition.output_arg))
            rows.append(
                f'{op} = {{ in = "{inputs}", out = "{outputs}", host = "{" ".join(sorted(named[op]))}" }}'
            )
    return rows


def main() -> int:
    """Writes the table."""
    tf.function(lambda x: x + 1, jit_compile=True)(tf.ones(2))  # registers the kernels
    sets: dict[tuple[str, ...], str] = {}
    rows: list[str] = []
    by_op: dict[str, list[Any]] = {}
    for kernel in kernels.get_all_registered_kernels().kernel:
        if kernel.device_type == "XLA_CPU_JIT":
            by_op.setdefault(kernel.op, []).append(kernel)
    for op in sorted(by_op):
        definition = op_def_registry.get(op)
        if definition is None:
            continue
        constraints = {c.name: c for kernel in by_op[op] for c in kernel.constraint}
        types: list[str] = []
        for name, constraint in sorted(constraints.items()):
            allowed = tuple(type_name(t) for t in constraint.allowed_values.list.type)
            key = sets.setdefault(allowed, f"types{len(sets)}")
            types.append(f'{name} = "{key}"')
        inputs = " ".join(map(argument, definition.input_arg))
        outputs = " ".join(map(argument, definition.output_arg))
        stateful = ", stateful = true" if definition.is_stateful else ""
        rows.append(
            f'{op} = {{ in = "{inputs}", out = "{outputs}", types = {{ {", ".join(types)} }}{stateful} }}'
        )
    host = host_memory()
    on_cpu = {
        kernel.op
        for kernel in kernels.get_all_registered_kernels().kernel
        if kernel.device_type in ("CPU", "DEFAULT")
    }
    xla_only = sorted(set(by_op) - on_cpu)
    references = sorted(
        name
        for name in dir(tf.raw_ops)
        if (definition := op_def_registry.get(name)) is not None
        and any(arg.is_ref for arg in definition.output_arg)
    )
    lines = [
        f"# Generated from TensorFlow {tf.__version__} by tools/make_tensorflow_op_table.py; do not edit.",
        "",
        f"references = {references!r}".replace("'", '"'),
        f"xla_only = {xla_only!r}".replace("'", '"'),
        "",
        "[sets]",
        *(f'{name} = "{" ".join(types)}"' for types, name in sets.items()),
        "",
        "[ops]",
        *rows,
        "",
        "[host_memory]",
        *host,
    ]
    OUT.write_text("".join(f"{line}\n" for line in lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
