"""Designed programs for `tools/measure_cost.py`: an instruction a kernel, so that each kind of work stands alone."""

from __future__ import annotations

from collections.abc import Iterator

from mlirhlo.debug.trials.conditions import load_module, verify
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.table import OPCODES

TYPES = ("f32", "f64", "bf16", "f8e4m3fn", "s32", "s8", "s64", "pred", "c64")
ATTRIBUTES = {
    "compare": ", direction=LT",
    "reduce-precision": ", exponent_bits=5, mantissa_bits=7",
    "rng-bit-generator": "",
}
NEEDS_INTEGERS = ("shift-", "mulhi")
SIZE = 4096
ADD = "add {{ a = {t}[] parameter(0)  b = {t}[] parameter(1)  ROOT c = {t}[] add(a, b) }}\n"
LESS = "less.{t} {{ a = {t}[] parameter(0)  b = {t}[] parameter(1)  ROOT c = pred[] compare(a, b), direction=LT }}\n"
PRODUCTS = (
    (64, 64, 64),
    (7, 48, 33),
    (128, 5, 64),
    (1, 256, 256),
    (40, 200, 12),
    (200, 3, 9),
    (24, 24, 100),
)


def designed() -> Iterator[tuple[str, str]]:
    """Names and texts."""
    for t in TYPES:
        yield f"designed elementwise {t}", program(elementwise(t), ADD.format(t=t))
    for t in ("f32", "f64", "bf16", "s32"):
        yield f"designed folds {t}", program(list(folds(t)), ADD.format(t=t))
        yield f"designed movement {t}", program(list(movement(t)), ADD.format(t=t))
    for t in ("f32", "f64", "bf16", "s8", "f8e4m3fn"):
        yield f"designed products {t}", program(list(products(t)), "")
    less = "".join(LESS.format(t=t) for t in ("f32", "s32", "bf16"))
    yield "designed sorts", program(list(sorts()), less)
    yield "designed solves", program(list(solves()), "")


def program(instructions: list[tuple[str, str]], head: str) -> str:
    """Instructions as `(shape, "opcode($f32[4], …)")`, each with parameters of its own in place of `$shape`."""
    lines, roots, shapes = list[str](), list[str](), list[str]()
    count = 0
    for number, (shape, text) in enumerate(instructions):
        while "$" in text:
            before, _, rest = text.partition("$")
            end = rest.index("]") + 1
            lines.append(f"  p{count} = {rest[:end]} parameter({count})")
            text = f"{before}p{count}{rest[end:]}"
            count += 1
        lines.append(f"  r{number} = {shape} {text}")
        roots.append(f"r{number}")
        shapes.append(shape)
    result = f"  ROOT t = ({', '.join(shapes)}) tuple({', '.join(roots)})"
    return "\n".join(["HloModule designed\n", head, "ENTRY e {", *lines, result, "}", ""])


def elementwise(t: str) -> list[tuple[str, str]]:
    """Every elementwise opcode that takes a type."""
    found: list[tuple[str, str]] = []
    for name, row in OPCODES.items():
        count = row.arity
        if not row.elementwise or not isinstance(count, int) or count > 2 or name == "convert":
            continue
        if (name.startswith(NEEDS_INTEGERS) and t[0] not in "su") or (name, t) == (
            "remainder",
            "c64",
        ):
            continue  # the verifier takes them, and they have no meaning
        for result in (t, "pred", "f32"):
            text = f"{name}({', '.join([f'${t}[{SIZE}]'] * count)}){ATTRIBUTES.get(name, '')}"
            if is_valid(shape := f"{result}[{SIZE}]", text):
                found.append((shape, text))
                break
    found += [
        (f"{o}[{SIZE}]", f"convert(${t}[{SIZE}])") for o in TYPES if o != "c64" != t and o != t
    ]
    shape = f"{t}[{SIZE}]"
    found.append((shape, f"select($pred[{SIZE}], ${shape}, ${shape})"))
    if t not in ("pred", "c64"):
        found.append((shape, f"clamp(${shape}, ${shape}, ${shape})"))
    return found


def is_valid(shape: str, text: str) -> bool:
    """Whether a program of one instruction verifies."""
    try:
        verify(load_module(program([(shape, text)], ""), "designed"), "designed")
    except (HloError, ValueError):
        return False
    return True


def folds(t: str) -> Iterator[tuple[str, str]]:
    """Sums over rows and columns, short and long."""
    for sizes in ((64, 64), (8, 512), (512, 8), (1000, 3), (16, 24, 20), (4096,)):
        shape = f"{t}[{','.join(map(str, sizes))}]"
        for kept in range(len(sizes)) if len(sizes) > 1 else (None,):
            dimensions = [d for d in range(len(sizes)) if d != kept]
            result = f"{t}[{'' if kept is None else sizes[kept]}]"
            attributes = f"dimensions={{{','.join(map(str, dimensions))}}}, to_apply=add"
            yield result, f"reduce(${shape}, ${t}[]), {attributes}"


def movement(t: str) -> Iterator[tuple[str, str]]:
    """Opcodes that move elements, with long and short rows."""
    for n in (4, 16, 64):
        m = SIZE // n
        yield f"{t}[{m},{n}]", f"transpose(${t}[{n},{m}]), dimensions={{1,0}}"
        yield f"{t}[{m},{n},1]", f"transpose(${t}[{n},1,{m}]), dimensions={{2,0,1}}"
        yield (
            f"{t}[{m},{n}]",
            f"dynamic-update-slice(${t}[{m},{n}], ${t}[{m // 2},{n}], $s32[], $s32[])",
        )
        yield f"{t}[{m},{n}]", f"broadcast(${t}[{m}]), dimensions={{0}}"
        yield f"{t}[{m},{n}]", f"broadcast(${t}[{n}]), dimensions={{1}}"
        yield f"{t}[{m},{n}]", f"slice(${t}[{m + 2},{n + 2}]), slice={{[1:{m + 1}],[1:{n + 1}]}}"
        yield f"{t}[{m + 2},{n}]", f"pad(${t}[{m},{n}], ${t}[]), padding=1_1x0_0"
        yield f"{t}[{m},{2 * n}]", f"concatenate(${t}[{m},{n}], ${t}[{m},{n}]), dimensions={{1}}"
        yield f"{t}[{m},{n}]", f"reverse(${t}[{m},{n}]), dimensions={{1}}"
        yield (
            f"{t}[{m},{n}]",
            f"dynamic-slice(${t}[{2 * m},{n}], $s32[], $s32[]), dynamic_slice_sizes={{{m},{n}}}",
        )
        yield (
            f"{t}[{m},{n}]",
            (
                f"gather(${t}[100,{n}], $s32[{m}]), offset_dims={{1}}, collapsed_slice_dims={{0}}, "
                f"start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,{n}}}"
            ),
        )
        yield (
            f"{t}[100,{n}]",
            (
                f"scatter(${t}[100,{n}], $s32[{m}], ${t}[{m},{n}]), update_window_dims={{1}}, "
                "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add"
            ),
        )
        yield f"{t}[{m},{n}]", f"add(${t}[{m},{n}], ${t}[{m},{n}])"
    for size in (256, 65_536, 1 << 20, 1 << 22):
        yield f"{t}[{size}]", f"negate(${t}[{size}])"


def products(t: str) -> Iterator[tuple[str, str]]:
    """Products of matrices and convolutions of several shapes."""
    result = "s32" if t == "s8" else t if t in ("f32", "f64") else "f32"
    for m, n, k in PRODUCTS:
        attributes = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
        yield f"{result}[{m},{n}]", f"dot(${t}[{m},{k}], ${t}[{k},{n}]), {attributes}"
        attributes = "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}"
        yield f"{result}[3,{m},{n}]", f"dot(${t}[3,{m},{k}], ${t}[3,{n},{k}]), {attributes}"
    if t in ("f32", "bf16"):
        for size, features, outputs in ((8, 3, 5), (16, 8, 16), (12, 16, 40)):
            window = "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"
            yield (
                f"{t}[2,{size},{size},{outputs}]",
                f"convolution(${t}[2,{size},{size},{features}], ${t}[3,3,{features},{outputs}]), {window}",
            )


def sorts() -> Iterator[tuple[str, str]]:
    """Rows of several lengths."""
    head = "sort(${0}), dimensions={{1}}, is_stable=true, to_apply=less.{1}"
    for t in ("f32", "s32", "bf16"):
        for rows, length in ((64, 6), (32, 40), (4, 500), (1, 6000)):
            yield f"{t}[{rows},{length}]", head.format(f"{t}[{rows},{length}]", t)


def solves() -> Iterator[tuple[str, str]]:
    """Factorisations and solutions."""
    options = "left_side=true, lower=true, unit_diagonal=false, transpose_a=NO_TRANSPOSE"
    for batch, size in ((1, 8), (4, 8), (1, 40), (2, 120)):
        matrix = f"f32[{batch},{size},{size}]"
        yield matrix, f"cholesky(${matrix}), lower=true"
        for columns in (1, 8):
            shape = f"f32[{batch},{size},{columns}]"
            yield shape, f"triangular-solve(${matrix}, ${shape}), {options}"
