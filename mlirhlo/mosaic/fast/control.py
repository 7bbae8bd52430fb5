"""Operations one after another, branches and loops."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from xdsl.ir import Block, Operation

from mlirhlo.mosaic.attributes import integer_of
from mlirhlo.mosaic.fast.elementwise import TABLE
from mlirhlo.mosaic.fast.memories import Memories, View
from mlirhlo.mosaic.fast.random import random_bits, set_seed
from mlirhlo.mosaic.fast.writer import Val, Writer, has_no_program

PARALLEL = 'mhlo.frontend_attributes = {mlirhlo.parallel = "true"}'
"""Attribute of loops whose rounds may run at the same time."""

_NOTHING = frozenset(
    {
        "tpu.wait_dma2",
        "tpu.wait_dma",
        "tpu.trace_start",
        "tpu.trace_stop",
        "tpu.trace_value",
        "tpu.delay",
    }
)
"""What orders things, or tells of them: here all things are in order."""


class Program(Memories):
    """One function under construction."""

    def __init__(self, writer: Writer, bounds: Sequence[int | Val]) -> None:
        super().__init__(writer)
        self.bounds = bounds
        """Of the grid; values where they are operands of the call."""
        self.random: View | None = None
        """The state of the generator of random bits, of kernels that have one."""

    def block(self, block: Block, without: Collection[Operation] = ()) -> list[Val]:
        """All operations but those in `without`; gives what the terminator yields."""
        for op in block.ops:
            if op in without:
                continue
            if op.name in ("scf.yield", "tpu.yield", "func.return"):
                return [self.values[value] for value in op.operands]
            if op.name == "scf.condition":
                return [self.values[value] for value in op.operands]
            self.one(op)
        return []

    def one(self, op: Operation) -> None:
        """One operation."""
        special = getattr(self, "do_" + op.name.replace(".", "_"), None)
        if special is not None:
            special(op)
            return
        if op.name in _NOTHING:
            return
        translate = TABLE.get(op.name)
        if translate is None:
            raise has_no_program(op)
        self.values[op.results[0]] = translate(self.w, op, [self.values[v] for v in op.operands])

    def _define(self, op: Operation, values: Sequence[Val]) -> None:
        for result, value in zip(op.results, values, strict=True):
            self.values[result] = value

    def do_scf_if(self, op: Operation) -> None:
        """Both branches give their values and the memories that either changed."""
        before = dict(self.memories)
        texts: list[list[str]] = []
        yielded: list[list[Val]] = []
        after: list[dict[int, Val]] = []
        for region in op.regions:
            self.memories = dict(before)
            with self.w.apart() as lines:
                yielded.append(self.block(region.blocks[0]) if region.blocks else [])
            texts.append(lines)
            after.append({number: self.memories[number] for number in before})
        changed = [n for n in before if any(one[n] is not before[n] for one in after)]
        self.memories = before
        results = [*yielded[0], *(before[n] for n in changed)]
        if not results:
            return
        for lines, values, memories in zip(texts, yielded, after, strict=True):
            lines.append(_return([*values, *(memories[n] for n in changed)]))
        made = [Val(self.w.name(), one.shape, one.element) for one in results]
        head = self._packed(made)
        condition = self.values[op.operands[0]]
        self.w.lines += [
            f'{head[0]} = "stablehlo.if"({condition.name}) ({{',
            *texts[0],
            "}, {",
            *texts[1],
            f"}}) : ({condition.type}) -> {head[1]}",
        ]
        made = head[2]
        self._define(op, made[: len(op.results)])
        for number, value in zip(changed, made[len(op.results) :], strict=True):
            self.memories[number] = value

    def _packed(self, made: list[Val]) -> tuple[str, str, list[Val]]:
        """Name, type and parts of several results."""
        types = ", ".join(one.type for one in made)
        if len(made) == 1:
            return made[0].name, made[0].type, made
        name = made[0].name
        parts = [Val(f"{name}#{at}", one.shape, one.element) for at, one in enumerate(made)]
        return f"{name}:{len(made)}", f"({types})", parts

    def loop(
        self,
        carried: Sequence[Val],
        condition: Callable[[list[Val]], Val],
        body: Callable[[list[Val]], list[Val]],
        *,
        is_parallel: bool = False,
    ) -> list[Val]:
        """A while loop over values and the memories that its body changes; `condition` and `body` take
        the carried values, and give one boolean, and the next ones.

        `is_parallel`: no round reads what another one writes.
        """
        before = dict(self.memories)
        inner = [Val(self.w.name(), one.shape, one.element) for one in carried]
        held = {
            number: Val(self.w.name(), one.shape, one.element) for number, one in before.items()
        }
        self.memories = dict(held)
        with self.w.apart() as tests:
            tests.append(_return([condition(inner)]))
        with self.w.apart() as lines:
            following = body(inner)
        changed = [number for number in before if self.memories[number] is not held[number]]
        lines.append(_return([*following, *(self.memories[number] for number in changed)]))
        # What no round changes is not carried: its name is the one outside.
        same = {held[n].name: before[n].name for n in before if n not in changed}
        tests, lines = (self.w.renamed(text, same) for text in (tests, lines))
        start = [*carried, *(before[n] for n in changed)]
        inner += [held[n] for n in changed]
        made = [Val(self.w.name(), one.shape, one.element) for one in start]
        name, _, parts = self._packed(made)
        pairs = ", ".join(f"{a.name} = {b.name}" for a, b in zip(inner, start, strict=True))
        types = ", ".join(one.type for one in start)
        said = f"attributes {{{PARALLEL}}} " if is_parallel else ""
        self.w.lines += [
            f"{name} = stablehlo.while({pairs}) : {types} {said}".rstrip(),
            "cond {",
            *tests,
            "} do {",
            *lines,
            "}",
        ]
        self.memories = before
        for number, value in zip(changed, parts[len(carried) :], strict=True):
            self.memories[number] = value
        return parts[: len(carried)]

    def whole(self, size: int | Val) -> Val:
        """A size as a value."""
        return size if isinstance(size, Val) else self.w.constant(size, "i32")

    def count(
        self, rounds: int | Val, body: Callable[[Val], None], *, is_parallel: bool = False
    ) -> None:
        """A loop over 0 … rounds - 1."""

        def goes_on(values: list[Val]) -> Val:
            return self.w.compare("LT", values[0], self.whole(rounds))

        def round_(values: list[Val]) -> list[Val]:
            body(values[0])
            return [self.w.like("add", values[0], self.w.constant(1, "i32"))]

        begin = self.w.constant(0, "i32")
        self.loop([Val(begin.name, (), "i32")], goes_on, round_, is_parallel=is_parallel)

    def do_scf_for(self, op: Operation) -> None:
        """A while loop that counts."""
        lower, upper, step, *initial = (self.values[value] for value in op.operands)
        block = op.regions[0].blocks[0]

        def condition(values: list[Val]) -> Val:
            return self.w.compare("LT", values[0], upper)

        def body(values: list[Val]) -> list[Val]:
            for argument, value in zip(block.args, values, strict=True):
                self.values[argument] = value
            result = self.block(block)
            return [self.w.like("add", values[0], step), *result]

        first = Val(lower.name, lower.shape, lower.element)
        self._define(op, self.loop([first, *initial], condition, body)[1:])

    def do_scf_while(self, op: Operation) -> None:
        """A while loop whose first region only decides."""
        before, after = (region.blocks[0] for region in op.regions)
        forwarded = list(before.last_op.operands[1:]) if before.last_op is not None else []
        if forwarded != list(before.args):
            raise has_no_program(op, "its condition passes other values on")

        def condition(values: list[Val]) -> Val:
            for argument, value in zip(before.args, values, strict=True):
                self.values[argument] = value
            return self.block(before)[0]

        def body(values: list[Val]) -> list[Val]:
            for argument, value in zip(after.args, values, strict=True):
                self.values[argument] = value
            return self.block(after)

        self._define(op, self.loop([self.values[v] for v in op.operands], condition, body))

    def do_tpu_prng_set_seed_32(self, op: Operation) -> None:
        """The generator starts again."""
        assert self.random is not None
        set_seed(self, self.random, op)

    def do_tpu_prng_random_bits(self, op: Operation) -> None:
        """The next bits."""
        assert self.random is not None
        random_bits(self, self.random, op)

    def do_tpu_region(self, op: Operation) -> None:
        """What stands in it."""
        self._define(op, self.block(op.regions[0].blocks[0]))

    do_tpu_trace = do_tpu_region

    def do_tpu_iteration_bound(self, op: Operation) -> None:
        """The size of the grid."""
        size = self.bounds[integer_of(op, "dim")]
        self.values[op.results[0]] = self.whole(size)


def _return(values: Sequence[Val]) -> str:
    names, types = ", ".join(v.name for v in values), ", ".join(v.type for v in values)
    return f"stablehlo.return {names} : {types}"
