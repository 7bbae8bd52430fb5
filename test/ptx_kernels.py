"""Kernels of a few lines for tests of the PTX simulator."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirhlo.simulator import LaunchReport, Machine

HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n"
BITS = {
    "pred": 32,
    "f16": 16,
    "bf16": 16,
    "f32": 32,
    "f64": 64,
    "f16x2": 32,
    "bf16x2": 32,
    "f32x2": 64,
}


def bits_of(type_name: str) -> int:
    """Bits of a register that holds a type."""
    return BITS.get(type_name) or int(type_name[1:])


def apply(
    body: str, results: str, *operands: tuple[str, np.ndarray[Any, Any]]
) -> np.ndarray[Any, Any]:
    """
    Runs an instruction for every element of the operands (`%a`, `%b`, … in the text; the result is `%d`).

    Operands are pairs of a type and its bits; the result is an array of bits.
    """
    count = len(operands[0][1])
    lines = [
        ".visible .entry k(.param .u64 out, .param .u32 n"
        + "".join(f", .param .u64 p{i}" for i in range(len(operands)))
        + ")",
        "{",
    ]
    lines.append(".reg .pred %q, %p, %p2; .reg .b32 %i, %t<4>; .reg .b64 %x<9>; .reg .b16 %h<4>;")
    width = bits_of(results)
    lines.append(f".reg .b{width} %d, %d2;")
    lines.append("mov.u32 %t0, %ctaid.x; mov.u32 %t1, %tid.x; mad.lo.u32 %i, %t0, 128, %t1;")
    lines.append("ld.param.u32 %t2, [n]; setp.ge.u32 %q, %i, %t2; @%q bra END;")
    for number, (name, _) in enumerate(operands):
        letter, bits = "abcefg"[number], bits_of(name)
        lines.append(f".reg .b{bits} %{letter};")
        lines.append(
            f"ld.param.u64 %x{number}, [p{number}]; mad.wide.u32 %x{number}, %i, {bits // 8}, %x{number};"
        )
        lines.append(f"ld.global.b{bits} %{letter}, [%x{number}];")
    lines.append(body)
    lines.append(
        f"ld.param.u64 %x8, [out]; mad.wide.u32 %x8, %i, {width // 8}, %x8; st.global.b{width} [%x8], %d;"
    )
    lines.append("END: ret;\n}")
    machine = Machine(memory_bytes=1 << 26)
    program = machine.load(HEAD + "\n".join(lines))
    out = machine.allocate(count * width // 8, "out")
    addresses = []
    for name, values in operands:
        bits = np.ascontiguousarray(values).view(f"u{bits_of(name) // 8}")
        addresses.append(machine.allocate(bits.nbytes, name))
        machine.write(addresses[-1], bits)
    report = machine.launch(program, "k", -(-count // 128), 128, [out, count, *addresses])
    assert not report.findings, report.findings[0]
    return machine.read(out, count * width // 8).view(f"u{width // 8}")


def launch(
    text: str,
    *arrays: np.ndarray[Any, Any],
    grid: Any = 1,
    block: Any = 32,
    scalars: tuple[int | float, ...] = (),
    **options: Any,
) -> tuple[LaunchReport, list[np.ndarray[Any, Any]]]:
    """Runs the only kernel of a text on copies of arrays; returns the report and the arrays afterwards."""
    machine = Machine(
        memory_bytes=1 << 26,
        **{key: options.pop(key) for key in ("seed", "checks") if key in options},
    )
    program = machine.load(text if ".version" in text else HEAD + text)
    addresses = [machine.allocate(array.nbytes, f"array {i}") for i, array in enumerate(arrays)]
    for address, array in zip(addresses, arrays, strict=True):
        machine.write(address, array)
    report = machine.launch(
        program, program.entries[0], grid, block, [*addresses, *scalars], **options
    )
    return report, [
        machine.read(address, array.nbytes).view(array.dtype).reshape(array.shape)
        for address, array in zip(addresses, arrays, strict=True)
    ]
