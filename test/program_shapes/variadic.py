"""Programs in which one instruction has many operands or many results."""

from __future__ import annotations

from program_shapes.registry import ADD, module, shape


def _shapes(kind: str, count: int) -> str:
    return f"({', '.join([kind] * count)})"


def _names(letter: str, count: int) -> str:
    return ", ".join(f"{letter}{n}" for n in range(count))


def _parameters(letter: str, kind: str, count: int, first: int = 0) -> list[str]:
    return [f"  {letter}{n} = {kind} parameter({first + n})" for n in range(count)]


def _function(name: str, lines: list[str]) -> str:
    return "\n".join([f"{name} {{", *lines, "}\n\n"])


def _elementwise(name: str, count: int) -> str:
    """A function of many arrays, each of which it changes."""
    lines = [
        *_parameters("a", "f32[8]", count),
        *(f"  b{n} = f32[8] {('tanh', 'sine')[n % 2]}(a{n})" for n in range(count)),
        f"  ROOT t = {_shapes('f32[8]', count)} tuple({_names('b', count)})",
    ]
    return _function(name, lines)


@shape
def wide_call(count: int) -> str:
    """A call of a function with many parameters and results."""
    width = count // 3
    call = f"  r = {_shapes('f32[8]', width)} call({_names('x', width)}), to_apply=f"
    return module([*_parameters("x", "f32[8]", width), call], _elementwise("f", width))


@shape
def wide_fusion(count: int) -> str:
    """A fusion with many parameters and results."""
    width = count // 3
    call = f"  r = {_shapes('f32[8]', width)} fusion({_names('x', width)}), kind=kLoop, calls=f"
    return module([*_parameters("x", "f32[8]", width), call], _elementwise("f", width))


@shape
def wide_conditional(count: int) -> str:
    """A conditional whose branches take and give a tuple of many arrays."""
    width = count // 6
    kind = _shapes("f32[8]", width)
    before = "".join(
        _function(
            name,
            [
                f"  p = {kind} parameter(0)",
                *(f"  x{n} = f32[8] get-tuple-element(p), index={n}" for n in range(width)),
                *(f"  y{n} = f32[8] {opcode}(x{n})" for n in range(width)),
                f"  ROOT t = {kind} tuple({_names('y', width)})",
            ],
        )
        for name, opcode in (("yes", "tanh"), ("no", "sine"))
    )
    lines = [
        "  p = pred[] parameter(0)",
        *_parameters("x", "f32[8]", width, 1),
        f"  s = {kind} tuple({_names('x', width)})",
        f"  r = {kind} conditional(p, s, s), true_computation=yes, false_computation=no",
    ]
    return module(lines, before)


@shape
def wide_sort(count: int) -> str:
    """A sort of many arrays by the first of them."""
    width = count // 3
    pairs = [f"  a{n} = f32[] parameter({n})" for n in range(2 * width)]
    less = _function("less", [*pairs, "  ROOT c = pred[] compare(a0, a1), direction=LT"])
    kind = _shapes("f32[8]", width)
    sort = f"  r = {kind} sort({_names('x', width)}), dimensions={{0}}, to_apply=less"
    return module([*_parameters("x", "f32[8]", width), sort], less)


@shape
def wide_reduce(count: int) -> str:
    """A reduction of many arrays at once."""
    width = count // 5
    sums = _function(
        "sums",
        [
            *_parameters("a", "f32[]", width),
            *_parameters("b", "f32[]", width, width),
            *(f"  c{n} = f32[] add(a{n}, b{n})" for n in range(width)),
            f"  ROOT t = {_shapes('f32[]', width)} tuple({_names('c', width)})",
        ],
    )
    operands = f"{_names('x', width)}, {', '.join(['z'] * width)}"
    reduce = f"  r = {_shapes('f32[]', width)} reduce({operands}), dimensions={{0}}, to_apply=sums"
    return module([*_parameters("x", "f32[8]", width), "  z = f32[] constant(0)", reduce], sums)


@shape
def wide_scatter(count: int) -> str:
    """A scatter into many arrays at once."""
    width = count // 6
    keep = _function(
        "keep",
        [
            *_parameters("a", "f32[]", width),
            *_parameters("b", "f32[]", width, width),
            *(f"  c{n} = f32[] add(a{n}, b{n})" for n in range(width)),
            f"  ROOT t = {_shapes('f32[]', width)} tuple({_names('c', width)})",
        ],
    )
    operands = f"{_names('x', width)}, i, {_names('v', width)}"
    scatter = (
        f"  r = {_shapes('f32[8]', width)} scatter({operands}), update_window_dims={{}}, inserted_window_dims={{0}},"
        " scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=keep"
    )
    lines = [
        *_parameters("x", "f32[8]", width),
        *_parameters("v", "f32[2]", width, width),
        "  i = s32[2,1] constant({{1},{5}})",
        scatter,
    ]
    return module(lines, keep)


@shape
def wide_map(count: int) -> str:
    """A map of a function of many elements."""
    width = count // 3
    lines = [*_parameters("a", "f32[]", width), "  sum0 = f32[] tanh(a0)"]
    lines += [f"  sum{n} = f32[] add(sum{n - 1}, a{n})" for n in range(1, width)]
    before = _function("f", [*lines, f"  ROOT r = f32[] sine(sum{max(width, 1) - 1})"])
    call = f"  r = f32[8] map({_names('x', width)}), dimensions={{0}}, to_apply=f"
    return module([*_parameters("x", "f32[8]", width), call], before)


@shape
def wide_all_reduce(count: int) -> str:
    """A collective of many arrays."""
    width = count // 2
    kind = _shapes("f32[8]", width)
    call = f"  r = {kind} all-reduce({_names('x', width)}), replica_groups={{}}, to_apply=add"
    return module([*_parameters("x", "f32[8]", width), call], ADD)


@shape
def tokens(count: int) -> str:
    """Tokens in a row, and one that waits for all of them."""
    lines = ["  x = f32[8] parameter(0)", "  t0 = token[] after-all()"]
    lines += [f"  t{n} = token[] after-all(t{n - 1})" for n in range(1, count)]
    lines.append(f"  all = token[] after-all({_names('t', count)})")
    return module([*lines, "  r = f32[8] add-dependency(x, all)"])
