"""The entry computation and the module's header."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.attributes.aliasing import (
    BufferDonors,
    BufferDonorsAttr,
    InputOutputAlias,
    InputOutputAliases,
    InputOutputAliasesAttr,
)
from mlirhlo.dialects.hlo.attributes.annotations import FrontendAttributes, FrontendAttributesAttr
from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.attributes.header import Booleans, BooleansAttr
from mlirhlo.dialects.hlo.attributes.sharding import REPLICATED, Sharding, ShardingAttr
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, Layout, Shape, TupleShape, parse_shape
from mlirhlo.dialects.hlo.syntax import SyntaxProblem
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.rewrites.stablehlo_to_hlo.core import Body, Exporter, location_of, type_problem
from mlirhlo.rewrites.stablehlo_to_hlo.frontend_attributes import (
    entries_of,
    frontend,
    parse_sharding,
)
from mlirhlo.rewrites.stablehlo_to_hlo.shardy import result_sharding, tensor_sharding
from mlirhlo.rewrites.stablehlo_to_hlo.types import TypeProblem, hlo_shape


def attributes_of(function: FuncOp, key: str, count: int) -> list[dict[str, Attribute]]:
    """The dictionaries of a function's arguments (`arg_attrs`) or results (`res_attrs`)."""
    found = function.properties.get(key)
    if not isinstance(found, ArrayAttr):
        return [{}] * count
    return [
        dict(cast(DictionaryAttr, one).data) for one in cast("ArrayAttr[Attribute]", found).data
    ]


class Function:
    """The computation of a function; `is_entry` for that of `main`."""

    __slots__ = (
        "arguments",
        "exporter",
        "function",
        "inputs",
        "is_entry",
        "results",
        "return_tuple",
        "tupled",
    )

    def __init__(
        self,
        exporter: Exporter,
        function: FuncOp,
        *,
        is_entry: bool = False,
        tupled: bool = False,
        return_tuple: bool = False,
    ) -> None:
        self.exporter = exporter
        self.function = function
        self.is_entry = is_entry
        self.tupled = tupled
        """Whether the parameters are one tuple."""
        self.return_tuple = return_tuple
        """Whether a lone result becomes a tuple too."""
        inputs, outputs = function.function_type.inputs, function.function_type.outputs
        self.inputs = list(inputs.data)
        self.arguments = attributes_of(function, "arg_attrs", len(inputs.data))
        self.results = attributes_of(function, "res_attrs", len(outputs.data))

    def convert(self) -> ComputationOp:
        """Converts the function. Raises `HloError` HLO042x."""
        function = self.function
        body = Body(self.exporter, function.sym_name.data)
        try:
            if self.tupled:
                self._tuple_parameter(body)
            else:
                self.exporter.parameters(function, body, self._parameter_properties)
        except TypeProblem as found:
            raise type_problem(function, found) from None
        results = body.lower_block(function.body.block)
        return body.finish(self._root(results, body), is_entry=self.is_entry)

    def _tuple_parameter(self, body: Body) -> None:
        shapes = [hlo_shape(t) for t in self.inputs]
        body.base, body.common = None, {}
        whole = body.parameter(0, TupleShape(tuple(shapes)), "arg_tuple")
        for index, argument in enumerate(self.function.body.block.args):
            body.values[argument] = body.element(whole, index)

    def _parameter_properties(self, index: int, body: Body) -> None:
        attributes = self.arguments[index]
        added: dict[str, Attribute] = {}
        sharding = self._sharding(attributes)
        if sharding is not None:
            added["sharding"] = ShardingAttr(sharding)
        replication = attributes.get("mhlo.parameter_replication")
        if isinstance(replication, ArrayAttr):
            values = cast("ArrayAttr[IntegerAttr[Any]]", replication).data
            added["parameter_replication"] = BooleansAttr(
                Booleans(tuple(v.value.data != 0 for v in values))
            )
        body.common = {**body.common, **added}
        entries = attributes.get("mhlo.frontend_attributes")
        if isinstance(entries, DictionaryAttr):
            frontend(body, entries_of(entries))
        shardy = attributes.get("sdy.sharding")
        if shardy is not None:
            frontend(body, {"xla.sdy.sharding": str(shardy)})

    def _sharding(self, attributes: dict[str, Attribute]) -> Sharding | None:
        plain = attributes.get("mhlo.sharding")
        if isinstance(plain, StringAttr):
            return parse_sharding(plain.data, self.function)
        shardy = attributes.get("sdy.sharding")
        if shardy is not None:
            return tensor_sharding(cast(Any, shardy).data, self.exporter.module, self.function)
        return None

    def _root(self, results: Sequence[SSAValue], body: Body) -> SSAValue:
        """The root; results with a sharding go through marked copies of themselves.

        The forms are XLA's: a lone result becomes a tuple of one and is taken out again, several
        get a `reshape` each that nothing uses, and the root's tuple is sharded.
        """
        body.base, body.common = None, {}
        shardings = [self._sharding(attributes) for attributes in self.results]
        values = list(results)
        alone = len(values) == 1 and not self.return_tuple
        if all(s is None for s in shardings):
            return values[0] if alone else body.tuple(values)
        returned = self.function.body.block.last_op
        for index, attributes in enumerate(self.results):
            if returned is not None:
                body.at(location_of(returned.operands[index]))
            values[index] = result_sharding(values[index], attributes, body)
        body.base, body.common = None, {}
        if alone:
            whole = body.tuple(values)
            body.common = {"sharding": ShardingAttr(cast(Sharding, shardings[0]))}
            return body.element(whole, 0)
        for value, sharding in zip(values, shardings, strict=True):
            body.common = {} if sharding is None else {"sharding": ShardingAttr(sharding)}
            shape = shape_of(value.type)
            if isinstance(shape, ArrayShape):
                body.emit("reshape", (value,), shape)
        joint = Sharding.tuple_of([REPLICATED if s is None else s for s in shardings])
        body.common = {"sharding": ShardingAttr(joint)}
        return body.tuple(values)

    # -------------------------------------------------------------- header

    def header(self, module: HloModule) -> None:
        """Writes the header attributes that `main` and the module carry."""
        self._aliases(module)
        self._layout(module)
        entries = self._module_frontend()
        if entries:
            module.set(
                "frontend_attributes", FrontendAttributesAttr(FrontendAttributes.of(entries))
            )

    def _module_frontend(self) -> dict[str, str]:
        source = self.exporter.module
        found = source.attributes.get("mhlo.frontend_attributes")
        entries = entries_of(found) if isinstance(found, DictionaryAttr) else {}
        meshes = {
            cast(StringAttr, op.properties["sym_name"]).data: str(op.properties["mesh"])
            for op in source.ops
            if op.name == "sdy.mesh"
        }
        if meshes and "xla.sdy.meshes" not in entries:
            spelled = ", ".join(f"{name} = {text}" for name, text in sorted(meshes.items()))
            entries["xla.sdy.meshes"] = "{" + spelled + "}"
        return entries

    def _aliases(self, module: HloModule) -> None:
        aliases: list[InputOutputAlias] = []
        donors: list[tuple[int, tuple[int, ...]]] = []
        several = len(self.results) != 1 or self.return_tuple
        for index, attributes in enumerate(self.arguments):
            number, path = (0, (index,)) if self.tupled else (index, ())
            target = attributes.get("tf.aliasing_output")
            if isinstance(target, IntegerAttr):
                output = cast("IntegerAttr[Any]", target).value.data
                aliases.append(InputOutputAlias((output,) if several else (), number, path))
            donor = attributes.get("jax.buffer_donor")
            if donor is not None and (
                not isinstance(donor, IntegerAttr) or cast("IntegerAttr[Any]", donor).value.data
            ):
                donors.append((number, path))
        aliases.sort(key=lambda a: a.output_index)
        if aliases:
            module.set(
                "input_output_alias", InputOutputAliasesAttr(InputOutputAliases(tuple(aliases)))
            )
        if donors:
            module.set("buffer_donor", BufferDonorsAttr(BufferDonors(tuple(donors))))

    def _layout(self, module: HloModule) -> None:
        """`entry_computation_layout`: the entry's own, with the layouts that arguments ask for."""
        found = module.entry_signature
        parameters = list(found.parameters)
        if not self.tupled:
            for index, attributes in enumerate(self.arguments):
                parameters[index] = _asked(parameters[index], attributes)
        result = found.result
        if isinstance(result, TupleShape) and len(result.elements) == len(self.results):
            result = TupleShape(
                tuple(_asked(s, a) for s, a in zip(result.elements, self.results, strict=True))
            )
        elif len(self.results) == 1:
            result = _asked(result, self.results[0])
        if tuple(parameters) != found.parameters or result != found.result:
            module.set_program_layout(parameters, result)


def _asked(shape: Shape, attributes: dict[str, Attribute]) -> Shape:
    """`shape` in the layout `mhlo.layout_mode` asks for: `default`, `auto`, or `{1,0}`."""
    mode = attributes.get("mhlo.layout_mode")
    if not isinstance(mode, StringAttr) or not isinstance(shape, ArrayShape):
        return shape
    text = mode.data.strip()
    if not text.startswith("{"):
        return shape
    sizes = ",".join("1" for _ in shape.dimensions)
    try:
        parsed = parse_shape(f"f32[{sizes}]{text}")
    except SyntaxProblem:
        raise error("HLO0426", f"mhlo.layout_mode: {text!r} is no layout of {shape}") from None
    layout = cast("Layout | None", getattr(parsed, "layout", None))
    return shape if layout is None else shape.with_layout(layout)


def device_counts(source: ModuleOp, module: HloModule) -> None:
    """`mhlo.num_replicas` and `mhlo.num_partitions` as header attributes."""
    for key, name in (("num_replicas", "replica_count"), ("num_partitions", "num_partitions")):
        found = source.attributes.get(f"mhlo.{key}")
        if isinstance(found, IntegerAttr):
            count = cast("IntegerAttr[Any]", found).value.data
            if count > 1:
                module.set(name, integer(count))
