"""HLO text over all opcodes, attributes and forms, for comparing two readings of it.

Every choice is drawn from hypothesis, and shrinks. The texts obey the parser's rules (operand
counts, required attributes), not the verifier's: shapes need not fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from mlirhlo.debug.fuzz.generators.choices import Choices
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.table import COMMON, OPCODES, Arity, AttrSpec, Opcode
from mlirhlo.formats.hlo_text.options import PrintOptions
from strategies.drawn import strategy_of

_WINDOWS = (
    "{size=3x3}",
    "{size=3 stride=2 pad=1_1}",
    "{size=3x3 stride=1x2 pad=0_0x-1_1 lhs_dilate=1x3 rhs_dilate=2x1 rhs_reversal=1x0}",
    "{}",
)

VALUES: Mapping[str, Sequence[str]] = {
    "integers": ("{}", "{0}", "{1,0}", "{0,2,-1}"),
    "integer_lists": ("{}", "{{0,1}}", "{{0,1},{2,3}}", "{{}}"),
    "integer": ("0", "7", "-1", "18446744073709551615"),
    "boolean": ("true", "false"),
    "booleans": ("{true}",),
    "float": ("1e-05", "0.5", "3", "-1.5e+10", "nan", "inf", "-inf"),
    "string": ('"x"', '""', '"a\\"b\\n\\303\\251"', "'single'", '"{a}, b=c /* no */"'),
    "bytes": ('"text"', '{"a":{"b":[1,2]},"c":"}"}', "{}", '"a\\\\b"', "{raw text}"),
    "precisions": ("{default,default}", "{high,HIGHEST}", "{}"),
    "shape": ("f32[2]{0}", "(f32[2,3]{1,0}, s32[])", "f32[]{:T(128)}", "token[]"),
    "window": _WINDOWS,
    "optional window": _WINDOWS,
    "padding": ("0_0", "1_-2", "0_0_0x1_2_3", "0_1x2_3"),
    "slice": ("{[0:2]}", "{[0:2], [1:9:2]}", "{}"),
    "dim_labels": ("b01f_01io->b01f", "bf_io->bf", "0fb_0io->bf0", "b?0f_0io->b0f"),
    "sparsity_config": ("{lhs={sparsity=2x4 dimension=1 stride=1}}", "{}"),
    "replica_groups": (
        "{}",
        "{{}}",
        "{{0,1},{2,3}}",
        "[2,2]<=[4]",
        "[2,4]<=[4,2]T(1,0)",
        "mesh['x'=2,'y'=2] {'x'}",
        "mesh['x'=2,'y'=4], device_ids=([4,2]T(1,0)) {'y':(1)2}",
    ),
    "sharding": (
        "{replicated}",
        "{manual}",
        "{unknown}",
        "{unreduced}",
        "{maximal device=3}",
        "{devices=[2,2]0,1,2,3}",
        "{devices=[2,2]<=[4]}",
        "{devices=[2,2]<=[2,2]T(1,0)}",
        "{devices=[2,1,2]<=[4] last_tile_dim_replicate}",
        "{devices=[2,2,2]<=[8] last_tile_dims={manual, replicated}}",
        "{replicated shard_as 3}",
        '{devices=[2]0,1 shard_like 4 metadata={op_name="x"}}',
        '{replicated metadata={{op_name="x"}, {op_name="y"}}}',
        "{mesh['x'=2,'y'=4], [{'x'}, {'y':(1)2, ?}], replicated={'y':(2)2}}",
        "{mesh['x'=2], replicated}",
        "{mesh['x'=2,'y'=2], device_ids=(3,2,1,0), [{}, {'y'}], manual={'x'}}",
        "{maximal_mesh[device_id=2]}",
    ),
    "domain": ('{kind="sharding", entry={replicated}, exit={maximal device=0}}',),
    "output_to_operand_aliasing": ("{}", "{{}: (0, {})}", "{{0}: (0, {1}), {1}: (0, {})}"),
    "literal": ("s32[2]{0} {1, 2}", "f32[] 1.5", "( s32[] 1, pred[2]{0} {1, 0} )", "c64[] (1, -2)"),
    "metadata": (
        '{op_type="a" op_name="b/c" source_file="f.py" source_line=3}',
        '{op_name="x" source_end_line=4 source_column=1 source_end_column=2 profile_type={1,2}}',
        '{op_name="x", deduplicated_name="y", scheduling_name="z", metadata_payload="p"}',
        "{}",
    ),
    "frontend_attributes": ('{a="1",b.c="two"}', '{x={"y":1},z="{"}', "{}", '{a="1",a="2"}'),
    "statistics": ("{visualizing_index=0,flops=12.5}", "{first=1,x=nan,y=-2}", "{}"),
    "origin": (
        '{{"p"}}',
        '{{"p" {0,1}}}',
        '{({"a"}, {}, ({"b" {0}}))}',
        "{[synthetic_call]}",
        "{}",
        "{()}",
    ),
    "result_accuracy": (
        "{mode=highest}",
        "{mode=default}",
        "{tolerance={atol=1e-05,rtol=0.5,ulps=3}}",
    ),
    "raw": ("{a={b=1}, c}",),
    "comparison direction": ("EQ", "NE", "GE", "GT", "LE", "LT"),
    "comparison type": ("FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"),
    "comparison order": ("PARTIAL", "TOTAL"),
    "fft type": ("FFT", "IFFT", "RFFT", "IRFFT"),
    "fusion kind": ("kLoop", "kInput", "kOutput", "kCustom"),
    "random distribution": ("rng_uniform", "rng_normal"),
    "random algorithm": ("rng_default", "rng_three_fry", "rng_philox"),
    "transpose": ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"),
    "padding type": ("PADDING_VALID", "PADDING_SAME"),
    "schedule": ("SCHEDULE_NONE", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST"),
    "API version": ("API_VERSION_ORIGINAL", "API_VERSION_TYPED_FFI"),
    "convolution kind": ("unset", "fprop", "dgrad", "wgrad"),
    "collective mode": ("cross_replica", "flattened_id"),
    "dot algorithm": ("unset", "dot_bf16_bf16_f32", "DOT_F32_F32_F32"),
}
"""Values of every kind, by the kind's name."""

ONLY: Mapping[str, str] = {
    "branch_computations": "{f, g}",
    "called_computations": "{f, %g}",
    "parameter_replication": "{true}",
    "async_execution_thread": '"main"',
    "operand_layout_constraints": "{f32[2,3]{1,0}}",
}
"""Values of attributes that must fit the rest of the text, by key."""

SHAPES = (
    "f32[2,3]",
    "f32[2,3]{1,0}",
    "bf16[<=4,?]{0,1:T(8,128)(2,1)S(1)}",
    "pred[]",
    "(f32[2], s32[])",
)


def random_shape(choose: Choices, depth: int = 0) -> str:
    """A shape: any type, dynamic sizes, layouts with parts, tuples, buffers."""
    roll = 99 - choose.integer(0, 99)
    if roll < 15 and depth < 3:
        return (
            "("
            + ", ".join(random_shape(choose, depth + 1) for _ in range(choose.integer(0, 3)))
            + ")"
        )
    names = [name for name, row in PRIMITIVE_TYPES.items() if row.is_array]
    if roll < 20:
        return choose.pick(("token[]", "opaque[]", "b(f32[8]{0})"))
    rank = choose.integer(0, 3)
    sizes = [choose.pick(("0", "1", "3", "<=7", "?")) for _ in range(rank)]
    text = f"{choose.pick(names)}[{','.join(sizes)}]"
    if choose.chance(50):
        order = choose.permutation(rank)
        parts = "".join(p for p in LAYOUT_PARTS if choose.chance(20))
        if order or parts:
            text += "{" + ",".join(map(str, order)) + (":" + parts if parts else "") + "}"
    return text


LAYOUT_PARTS = (
    "T(8,128)(2,*)",
    "L(4)",
    "#(u32)",
    "*(u8)",
    "E(4)",
    "S(5)",
    "SC(0:1,2)(1:3)",
    "M(16)",
)


class Generator:
    """Writes one module. With `loose`, blanks, comments and line breaks stand anywhere."""

    def __init__(self, choose: Choices, *, loose: bool) -> None:
        self.choose, self.loose = choose, loose
        self.count = 0

    def gap(self, usual: str = "") -> str:
        """What stands between two tokens."""
        if not self.loose or not self.choose.chance(40):
            return usual
        blank = self.choose.pick(
            (" ", "\n", "\t", " /* a comment, {( */ ", " // to the end\n", "\r\n")
        )
        return usual + blank

    def name(self) -> str:
        """A new name."""
        self.count += 1
        return self.choose.pick(("v", "add", "a-b_c", "%true", "x.y")) + f".{self.count}"

    def value(self, spec: AttrSpec) -> str:
        """A value of an attribute."""
        if spec.key in ONLY:
            return ONLY[spec.key]
        if spec.key == "calls" and spec.read_only:
            return self.choose.pick(("w", "%w"))
        if spec.kind.name == "computation":
            if self.choose.chance(20):
                return "{ i = f32[] parameter(0) ROOT n = f32[] negate(i) }"
            return self.choose.pick(("f", "%g"))
        if spec.key == "dimensions":
            return "{0}"
        return self.choose.pick(VALUES[spec.kind.name])

    def attributes(self, row: Opcode) -> str:
        """Required attributes, and some others, in any order."""
        specs = [s for s in row.attributes if row.name != "constant"] + [
            s for s in COMMON if row.accuracy or s.key != "result_accuracy"
        ]
        chosen = [s for s in specs if s.required or self.choose.chance(25)]
        if row.name == "conditional":
            chosen = [s for s in chosen if s.key != "branch_computations"]
            chosen += [s for s in row.attributes if s not in chosen and "_computation" in s.key]
            chosen = [s for s in chosen if s.key != "branch_computations"]
        if "use_global_device_ids" in {s.key for s in chosen}:
            chosen += [s for s in specs if s.key == "channel_id" and s not in chosen]
        chosen = [s for s in chosen if s.key not in ("slice_sizes", "to_apply") or s.required]
        chosen = [chosen[at] for at in self.choose.permutation(len(chosen))]
        texts = [f"{s.key}={self.gap()}{self.value(s)}" for s in chosen]
        if self.choose.chance(10):
            texts.append("control-predecessors={" + "a," + self.gap() + " %p}")
        return "".join(self.gap() + "," + self.gap(" ") + text for text in texts)

    def instruction(self, row: Opcode) -> str:
        """A line of an opcode; operands are `a` (f32[2,3]), `p` (pred[]), `t`, `s` (asynchronous)."""
        shape = self.choose.pick(SHAPES) if self.choose.chance(50) else random_shape(self.choose)
        operands = {Arity.EVEN: 2, Arity.ODD: 3}.get(row.arity, self.choose.integer(1, 3))  # type: ignore[call-overload]
        if isinstance(row.arity, int):
            operands = row.arity
        names = ["a"] * operands
        match row.name:
            case "parameter" | "constant":
                return self.special(row)
            case "tuple":
                shape = "(" + ", ".join(["f32[2,3]"] * operands) + ")"
            case "conditional":
                names = ["p", "a", "a"]
            case "dynamic-slice":
                names = ["a", "p", "p"]
            case "dynamic-update-slice":
                names = ["a", "a", "p", "p"]
            case "dot" | "convolution":
                names = ["a", "a"]
            case "custom-call":
                names = ["a"]
            case "async-update" | "async-done":
                names = ["s"]
            case _:
                pass
        return f"{shape}{self.gap(' ')}{row.name}{self.operands(names)}{self.attributes(row)}"

    def special(self, row: Opcode) -> str:
        """A constant (parameters stand in every computation anyway)."""
        shape, value = self.choose.pick(
            (
                ("f32[]", "-1.5e-3"),
                ("s32[2,2]{0,1}", "{ { 1, 2 }, { 3, -4 } }"),
                ("pred[]", "true"),
                ("c64[2]", "{(1, nan), (-inf, 2.)}"),
                ("f32[3]", "{...}"),
                ("(s32[], f32[2,0])", "( 1, { {}, {} } )"),
                ("bf16[]", "-nan"),
                ("f32[]", "nan(0x7)"),
                ("u8[0]", "{}"),
            )
        )
        return f"{shape} constant({self.gap()}{value}{self.gap()}){self.attributes(OPCODES['constant'])}"

    def operands(self, names: Sequence[str]) -> str:
        """An operand list: with or without `%`, shapes, nested instructions."""
        shapes = {"a": "f32[2,3]{0,1}", "p": "pred[]"}
        texts: list[str] = []
        for name in names:
            text = self.choose.pick(("", "%")) + name
            if name in shapes and self.choose.chance(20):
                text = shapes[name] + self.gap(" ") + text
            elif name == "a" and self.choose.chance(10):
                text = f"f32[2,3] negate{self.gap()}(a)"
            texts.append(text)
        return self.gap() + "(" + ("," + self.gap(" ")).join(texts) + self.gap() + ")"

    def module(self, rows: Sequence[Opcode]) -> str:
        """A module with one instruction of every row."""
        lines = [
            "a = f32[2,3] parameter(0)",
            "%p = pred[] parameter(1), parameter_replication={true}",
            "t = token[] after-all()",
            "s = ((f32[2,3]), f32[2,3], s32[]) async-start(a), calls=w",
        ]
        for row in rows:
            if row.name not in ("parameter", "async-start"):
                lines.append(f"{self.name()} ={self.gap(' ')}{self.instruction(row)}")
        if self.choose.chance(50):
            at = self.choose.integer(2, len(lines) - 1)
            lines[at] = "ROOT " + lines[at]
        body = (self.gap("\n  ") if self.loose else "\n  ").join(lines)
        header = self.choose.pick(
            ("", ", is_scheduled=true", ", replica_count=2, num_partitions=4")
        )
        return (
            f"HloModule generated{header}\n\n"
            "f (x: f32[]) -> f32[] {\n  x = f32[] parameter(0)\n  ROOT y = f32[] negate(x)\n}\n\n"
            "%g { u = f32[] parameter(0) }\n\n"
            "w { k = f32[2,3] parameter(0) ROOT n = f32[2,3] negate(k) }\n\n"
            f"ENTRY e {{\n  {body}\n}}\n"
        )


def texts(loose: bool, rows: Sequence[Opcode] = ()) -> st.SearchStrategy[str]:
    """Modules with an instruction of each of `rows`, or of some of the table's."""

    def make(choose: Choices) -> str:
        chosen = rows
        if not chosen:
            every = list(OPCODES.values())
            chosen = [choose.pick(every) for _ in range(choose.integer(1, 24))]
        return Generator(choose, loose=loose).module(chosen)

    return strategy_of(make)


SWITCHES = (
    "metadata", "backend_config", "operand_shapes", "program_shape", "percent",
    "full_replica_groups", "frontend_attributes", "sharding", "origin",
    "async_sugar", "stored_instruction_order", "name_after_closing_brace", "sorted_backend_config",
)  # fmt: skip
"""Print options whose text can be read back."""


def print_options(choose: Choices) -> PrintOptions:
    """Any of XLA's options that leave a text whole, constants in full."""
    defaults = PrintOptions(large_constants=True)
    flipped = {name: not getattr(defaults, name) for name in SWITCHES if choose.chance(30)}
    interval = choose.pick((5, 0, 1))
    return replace(defaults, operand_index_interval=interval, **flipped)
