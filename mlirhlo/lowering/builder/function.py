"""Functions and structured control flow."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    MemRefType,
    i8,
)
from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects.interned import (
    UNIT,
    dictionary,
    integer64,
    integers32,
    integers64,
    string,
    symbol_ref,
)
from mlirhlo.dialects.quick import append, create_op, function_type, new_block, prepend, region_of
from mlirhlo.lowering.builder.memory import MemoryBuilder
from mlirhlo.lowering.builder.types import (
    IN_PLACE,
    INDEX,
    NOALIAS,
    NONEMPTY,
    UPDATES,
    WORK,
    WORKSPACE,
    Index,
)


@dataclass
class Loop:
    """A loop while it is built, and its results after it."""

    index: SSAValue
    carried: Sequence[SSAValue]
    """Values carried from the round before."""
    results: Sequence[SSAValue] = ()
    _next: list[SSAValue] = field(default_factory=list[SSAValue])

    def carry(self, *values: SSAValue) -> None:
        """Says what the next round gets, in the order of `carried`."""
        self._next[:] = values


@dataclass
class Choice:
    """Values that a branch may replace."""

    results: Sequence[SSAValue] = ()
    _given: list[SSAValue] = field(default_factory=list[SSAValue])

    def give(self, *values: SSAValue) -> None:
        """Says what the branch makes of them, in their order."""
        self._given[:] = values


class FunctionBuilder(MemoryBuilder):
    """Builds one `func.func` of the loops stage."""

    def __init__(
        self,
        name: str,
        argument_types: Sequence[Attribute],
        result_types: Sequence[Attribute] = (),
        *,
        public: bool = True,
        argument_attributes: Sequence[dict[str, Attribute]] = (),
    ) -> None:
        super().__init__(new_block(argument_types))
        self.name = name
        self.arguments: Sequence[SSAValue] = self._body.args
        self._results = result_types
        self._public = public
        self._argument_attributes = [dict(a) for a in argument_attributes]
        self._attributes: dict[str, Attribute] = {}

    def finish(self, *results: SSAValue) -> func.FuncOp:
        """Ends the function with a return."""
        append(self.block, create_op(func.ReturnOp, results))
        prepend(self._body, self._heads)
        types = [a.type for a in self._body.args]
        properties: dict[str, Attribute] = {
            "sym_name": string(self.name),
            "function_type": function_type(types, self._results),
        }
        if not self._public:
            properties["sym_visibility"] = string("private")
        if self._argument_attributes:
            given = self._argument_attributes
            given += [{NOALIAS: UNIT} for _ in types[len(given) :]]
            properties["arg_attrs"] = ArrayAttr([dictionary(a) for a in given])
        return create_op(
            func.FuncOp,
            (),
            (),
            properties,
            regions=[region_of(self._body)],
            attributes=self._attributes,
        )

    def workspace(self, size_bytes: int) -> SSAValue:
        """Memory for this call alone, 64 bytes aligned: `memref<size_bytes x i8>`.

        It becomes the function's last argument, which the plan gives it a part of the arena for.
        Asked for once.
        """
        assert WORKSPACE not in self._attributes
        self._attributes[WORKSPACE] = integer64(size_bytes)
        return self._body.insert_arg(MemRefType(i8, [size_bytes]), len(self._body.args))

    def may_share(self, operand: int, result: int) -> None:
        """The arguments of these numbers may be one buffer.

        Every byte of it has to be read before, or by the very round that, writes it.
        """
        before = cast("ArrayAttr[Attribute] | None", self._attributes.get(IN_PLACE))
        pair = integers64(operand, result)
        self._attributes[IN_PLACE] = ArrayAttr([*(before or ()), pair])
        for at in (operand, result):
            if at < len(self._argument_attributes):
                self._argument_attributes[at].pop(NOALIAS, None)

    def updates(self, operand: int, result: int) -> None:
        """Where both are one buffer, only a slice of it is read and written."""
        self._attributes[UPDATES] = integers64(operand, result)

    @contextmanager
    def loop(
        self,
        lower: Index,
        upper: Index,
        step: int = 1,
        initial: Sequence[SSAValue] = (),
        *,
        nonempty: bool = False,
    ) -> Generator[Any]:
        """`for (i = lower; i < upper; i += step)`.

        Gives the index, or with `initial` values a `Loop`. `nonempty`: there is a first round always, so that
        nothing has to be asked in front of it.
        """
        types = [v.type for v in initial]
        body = new_block([INDEX, *types])
        operands = [self.index(lower), self.index(upper), self.index(step), *initial]
        loop = Loop(body.args[0], body.args[1:])
        outer, self.block = self.block, body
        yield loop if initial else loop.index
        append(self.block, create_op(scf.YieldOp, loop._next))  # pyright: ignore[reportPrivateUsage]
        self.block = outer
        attributes: dict[str, Attribute] = {NONEMPTY: UNIT} if nonempty else {}
        regions = [region_of(body)]
        op = create_op(scf.ForOp, operands, types, regions=regions, attributes=attributes)
        append(outer, op)
        loop.results = op.results

    @contextmanager
    def parallel(self, count: Index, *, work: float | None = None) -> Generator[SSAValue]:
        """Rounds `0..count` that may run at the same time; gives the index.

        `work`: estimated time of all of them together on one core, in nanoseconds. Little work is
        done by the calling thread, and more of it by no more threads than it feeds; without a
        number by all there are. Inside another parallel loop it is an ordinary one.
        """
        body = new_block([INDEX])
        operands = [self.index(0), self.index(count), self.index(1)]
        outer, self.block = self.block, body
        scratch, self._scratch = self._scratch, []
        yield body.args[0]
        append(self.block, create_op(scf.ReduceOp))
        prepend(body, self._scratch)
        self.block, self._scratch = outer, scratch
        properties: dict[str, Attribute] = {"operandSegmentSizes": integers32(1, 1, 1, 0)}
        attributes: dict[str, Attribute] = {}
        if work is not None:
            attributes[WORK] = integer64(int(work))
        append(
            outer,
            create_op(
                scf.ParallelOp,
                operands,
                (),
                properties,
                regions=[region_of(body)],
                attributes=attributes,
            ),
        )

    @contextmanager
    def if_(
        self, condition: SSAValue, otherwise: Callable[[], None] | None = None
    ) -> Generator[None]:
        """`if (condition) { … } else { otherwise() }`."""
        body, other = new_block(), new_block()
        outer, self.block = self.block, body
        yield
        append(self.block, create_op(scf.YieldOp))
        if otherwise is not None:
            self.block = other
            otherwise()
            append(self.block, create_op(scf.YieldOp))
        self.block = outer
        regions = [region_of(body), region_of() if otherwise is None else region_of(other)]
        append(outer, create_op(scf.IfOp, [condition], regions=regions))

    @contextmanager
    def otherwise(self, condition: SSAValue, values: Sequence[SSAValue]) -> Generator[Choice]:
        """Other `values` where the condition holds: `choice.give(…)` inside, `choice.results` after."""
        choice = Choice()
        then, other = new_block(), new_block()
        outer, self.block = self.block, then
        yield choice
        append(self.block, create_op(scf.YieldOp, choice._given))  # pyright: ignore[reportPrivateUsage]
        self.block = outer
        append(other, create_op(scf.YieldOp, values))
        types = [v.type for v in values]
        op = create_op(scf.IfOp, [condition], types, regions=[region_of(then), region_of(other)])
        append(outer, op)
        choice.results = op.results

    def call(self, name: str, operands: Sequence[SSAValue]) -> None:
        """Calls a function without results."""
        self.effect(func.CallOp, operands, {"callee": symbol_ref(name)})
