"""A kernel that is written: its module, what it is called with, and where it runs."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import ModuleOp

from mlirhlo.diagnostics import HloError, Severity, error
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.formats.mosaic import print_kernel
from mlirhlo.importing import LATE
from mlirhlo.mosaic.decode import write_stable
from mlirhlo.mosaic.interpreter import InterpretParams
from mlirhlo.mosaic.interpreter import Kernel as Runner
from mlirhlo.mosaic.language.elements import BOOL, I32, element_type, short_name
from mlirhlo.mosaic.language.specs import (
    CompilerParams,
    CostEstimate,
    ShapeDtypeStruct,
    SideEffectType,
)
from mlirhlo.mosaic.target import check_target
from mlirhlo.mosaic.timeline import Timeline

with LATE:
    from mlirhlo.lowering import target as lowering_target
    from mlirhlo.mosaic import fast, tpu_compiler
    from mlirhlo.mosaic.pipeline import dumps


if TYPE_CHECKING:
    from pathlib import Path

    from mlirhlo.mosaic.tpu_compiler import Job, Verdict

LOG = logging.getLogger(__name__)

PLATFORMS = ("interpreter", "cpu", "gpu", "cuda")

_SIGNED = {np.dtype(f"u{n}"): np.dtype(f"i{n}") for n in (1, 2, 4)}
_SIGNED[np.dtype(ml_dtypes.uint4)] = np.dtype(ml_dtypes.int4)
"""What the CPU compiler, whose integers have no sign, takes in the place of others without a conversion."""


@dataclass(slots=True, eq=False)
class Kernel:
    """A module of the `tpu` dialect with the types of its arrays."""

    module: ModuleOp
    name: str
    inputs: tuple[ShapeDtypeStruct, ...]
    results: tuple[ShapeDtypeStruct, ...]
    rebuild: Callable[[list[Any]], Any]
    dynamic_bounds: int
    aliases: Mapping[int, int]
    params: CompilerParams
    cost_estimate: CostEstimate | None
    mesh: Mapping[str, int]
    has_communication: bool
    metadata: Mapping[str, Any]
    fallbacks: int = 0
    """Calls with `platform="cpu"` that the simulator ran."""
    _runner: Any = None
    """The simulator's form of the module."""
    _executables: dict[tuple[str, bool], Any] = field(default_factory=dict[tuple[str, bool], Any])
    """By platform, and whether operands of products are rounded."""
    _is_dumped: bool = False

    def as_text(self, form: Any = "pretty", *, debug_info: bool = False) -> str:
        """The module as the TPU compiler prints it: `pretty`, `generic` or `stable`."""
        return print_kernel(self.module, form=form, debug_info=debug_info)

    def __str__(self) -> str:
        return self.as_text()

    def __call__(self, *arrays: Any, platform: str = "interpreter", options: Any = None) -> Any:
        """The results for numpy arrays; dynamic bounds of the grid come first."""
        if platform not in PLATFORMS:
            raise error(
                "HLO0720",
                f"kernels do not run on {platform!r}",
                help="use interpreter, cpu or cuda; for a TPU, put to_stablehlo() into a program",
            )
        self._dump_once()
        if len(arrays) != self.dynamic_bounds + len(self.inputs):
            bounds = (
                f"{self.dynamic_bounds} bound(s) of its grid and " if self.dynamic_bounds else ""
            )
            raise error(
                "HLO0726",
                f"{self.name} takes {bounds}{len(self.inputs)} array(s), not {len(arrays)} operand(s)",
                help="bounds of the grid that are known at the call come first, then the arrays in order",
            )
        if platform != "interpreter":
            rounds = bool(getattr(options, "rounds_matmul_operands", False))
            executable = self._compiled(platform, rounds)
            if executable is not None:
                return self._run_compiled(executable, arrays)
            self.fallbacks += 1

        stated = options or self.interpret_params()
        if stated.vmem_limit_bytes is None:
            stated = replace(stated, vmem_limit_bytes=self.params.vmem_limit_bytes)
        if self._runner is None:
            self._runner = Runner(self.module, self.params.internal_scratch_in_bytes or 0)
        types = [(one.shape, I32 if one.dtype == BOOL else one.dtype) for one in self.results]
        aliases = {
            result: operand + self.dynamic_bounds for operand, result in self.aliases.items()
        }
        devices = [
            [self._passed(array, at) for at, array in enumerate(shards)]
            for shards in self._shards(arrays)
        ]
        found = self._runner.run_on(devices, types, aliases=aliases, options=stated)
        lead = tuple(self.mesh.values())
        results: list[Any] = []
        for number, one in enumerate(self.results):
            shards = [device[number] for device in found]
            array = np.stack(shards).reshape(*lead, *one.shape) if lead else shards[0]
            results.append(array != 0 if one.dtype == BOOL else array)
        return self.rebuild(results)

    def interpret_params(self) -> InterpretParams:
        """How the kernel is simulated unless a call says otherwise."""
        return InterpretParams(vmem_limit_bytes=self.params.vmem_limit_bytes)

    def timeline(self, *arrays: Any, generation: str = "v5e", options: Any = None) -> Timeline:
        """What happens when, in modelled cycles of a generation, while the kernel runs on arrays.

        Raises `HloError` HLO0749 for a generation that is not modelled.
        """
        taken = Timeline(generation)
        self(*arrays, options=replace(options or self.interpret_params(), timeline=taken))
        return taken

    def _compiled(self, platform: str, rounds: bool) -> Any:
        """The kernel as machine code of a platform, compiled at the first call. On the CPU None, with a warning
        (HLO0738), where only the simulator has what it asks for; on GPUs this is raised."""
        key = (platform, rounds)
        if key not in self._executables and (platform != "cpu" or self.fallbacks == 0):
            # The door of the whole package, which is above this room.
            front = import_module("mlirhlo")
            try:
                has = lowering_target.current().has
                pairs = platform == "cpu" and (has("avx512bf16") or has("amx-bf16", "amx-tile"))
                text = self.to_program(rounds_matmul_operands=rounds, multiplies_pairs=pairs)
                self._executables[key] = front.compile(front.parse(text), platform)
            except HloError as problem:
                if problem.code != "HLO0738" or platform != "cpu":
                    raise
                LOG.warning("%s", replace(problem.diagnostics[0], severity=Severity.WARNING))
        return self._executables.get(key)

    def _run_compiled(self, executable: Any, arrays: Sequence[Any]) -> Any:
        given = (self._passed(array, at) for at, array in enumerate(arrays))
        found = executable(*map(_signed, given))
        if findings := getattr(executable, "findings", ()):
            raise HloError(*findings)
        held = list(found) if isinstance(found, tuple | list) else [found]
        return self.rebuild(
            [
                np.asarray(array) != 0 if one.dtype == BOOL else np.asarray(array).view(one.dtype)
                for array, one in zip(held, self.results, strict=True)
            ]
        )

    def to_program(
        self, *, rounds_matmul_operands: bool = False, multiplies_pairs: bool = False
    ) -> str:
        """The kernel as loops over its grid in StableHLO, without copies of its own.

        `multiplies_pairs`: for a processor that multiplies pairs of bf16.

        Raises `HloError` HLO0738 for operations that only the simulator has.
        """
        if self.mesh:
            raise error(
                "HLO0738",
                f"{self.name} on a mesh of devices has no form for the CPU compiler",
                help='run the kernel with platform="interpreter"',
            )
        inputs, results = (
            [
                (one.shape, str(element_type(I32 if one.dtype == BOOL else one.dtype)))
                for one in group
            ]
            for group in (self.inputs, self.results)
        )
        inputs = [*(((), "i32") for _ in range(self.dynamic_bounds)), *inputs]
        aliases = {
            result: operand + self.dynamic_bounds for operand, result in self.aliases.items()
        }
        return fast.program_of(
            self.module,
            inputs,
            results,
            aliases,
            rounds_matmul_operands=rounds_matmul_operands,
            multiplies_pairs=multiplies_pairs,
        )

    def _shards(self, arrays: Sequence[Any]) -> list[list[Any]]:
        """The arrays of each device. Raises `HloError` HLO0729."""
        sizes = tuple(self.mesh.values())
        if not sizes:
            return [list(arrays)]
        bounds, given = arrays[: self.dynamic_bounds], arrays[self.dynamic_bounds :]
        held = [np.asarray(array) for array in given]
        for number, array in enumerate(held):
            if array.shape[: len(sizes)] != sizes:
                raise error(
                    "HLO0729",
                    f"operand {number} of {self.name} has shape {list(array.shape)}; on a mesh of "
                    f"{dict(self.mesh)} it begins with {list(sizes)}: one shard a device",
                    help="stack the shards of the devices along new leading dimensions",
                )
        return [[*bounds, *(array[at] for array in held)] for at in np.ndindex(*sizes)]

    def _passed(self, array: Any, number: int) -> Any:
        held = np.asarray(array)
        if number < self.dynamic_bounds and (held.ndim or held.dtype.kind not in "iu"):
            raise error(
                "HLO0726",
                f"bound {number} of the grid of {self.name} is {held.dtype}{list(held.shape)}",
                help="give one whole number, np.int32(n)",
            )
        if number < self.dynamic_bounds:
            held = held.astype(np.int32)
        else:
            wanted = self.inputs[number - self.dynamic_bounds]
            held = held.reshape(wanted.shape) if held.ndim == 0 and wanted.shape == (1,) else held
            if held.shape != wanted.shape or held.dtype != wanted.dtype:
                raise error(
                    "HLO0726",
                    f"operand {number} of {self.name} is {held.dtype}{list(held.shape)}, the kernel "
                    f"was lowered for {wanted.dtype}{list(wanted.shape)}",
                    help="lower it again for these arrays",
                )
        return held.astype(np.int32) if held.dtype == BOOL else held

    def check(self, target: str) -> None:
        """Raises `HloError` with what a generation of TPUs (`v5e`, `v6e`, …) refuses of the kernel."""
        shapes = [one.shape for one in (*self.inputs, *self.results)]
        check_target(
            self.module,
            target,
            operands=shapes,
            collective_id=self.params.collective_id,
            vmem_limit_bytes=self.params.vmem_limit_bytes,
        ).require()

    def compile(self, generation: str = "v5e") -> Verdict:
        """What the real TPU compiler says of the kernel, for a generation or a topology (`v5e:4x4`).

        Raises `HloError` HLO0739 when the packages jax and libtpu are missing.
        """
        return tpu_compiler.compile_all([self.job(generation)])[0]

    def job(self, generation: str = "v5e") -> Job:
        """What `tpu_compiler.compile_all` takes."""
        count = 1
        for size in self.mesh.values():
            count *= size
        return tpu_compiler.Job(
            self.backend_config(),
            [*(("int32", ()) for _ in range(self.dynamic_bounds)), *map(_passed_as, self.inputs)],
            [_passed_as(one) for one in self.results],
            [(a + self.dynamic_bounds, b) for a, b in self.aliases.items()],
            count,
            bool(self.params.has_side_effects),
            tpu_compiler.TOPOLOGIES.get(generation, generation),
        )

    def dump(self, directory: str, *, debug_info: bool = False) -> tuple[Path, ...]:
        """Writes a file for every stage of the compiler's pipeline, as `--xla_mosaic_dump_to` does."""
        return dumps.dump_stages(self.module, directory, name=self.name, debug_info=debug_info)

    def _dump_once(self) -> None:
        """Writes the stages where XLA_FLAGS or LIBTPU_INIT_ARGS ask for them, at the first call."""
        if self._is_dumped:
            return
        self._is_dumped = True
        # Flags are read by a package above this one.
        options = import_module("mlirhlo.debug.options").process_flags().options
        if options.xla_mosaic_dump_to:
            shows_places = options.xla_mosaic_enable_dump_debug_info
            self.dump(options.xla_mosaic_dump_to, debug_info=shows_places)

    # As part of a program.

    def backend_config(self) -> str:
        """The JSON of the `tpu_custom_call`."""
        params = self.params
        call: dict[str, Any] = {
            "body": base64.b64encode(write_stable(self.module)).decode(),
            "serialization_format": 1,
            "needs_layout_passes": True,
        }
        if self.has_communication:
            call["has_communication"] = True
        for key, value in (
            ("collective_id", params.collective_id),
            ("internal_scratch_in_bytes", params.internal_scratch_in_bytes),
            ("allow_input_fusion", params.allow_input_fusion),
        ):
            if value is not None:
                call[key] = list(value) if isinstance(value, Sequence) else value
        for key in ("disable_bounds_checks", "disable_semaphore_checks", "skip_device_barrier"):
            if getattr(params, key):
                call[key] = True
        if not params.shape_invariant_numerics:
            call["shape_invariant_numerics"] = False
        if self.cost_estimate is not None:
            cost = self.cost_estimate
            call["cost_estimate"] = {
                name: getattr(cost, name)
                for name in (
                    "flops",
                    "transcendentals",
                    "bytes_accessed",
                    "remote_bytes_transferred",
                )
            }
        config: dict[str, Any] = {"custom_call_config": call}
        if params.vmem_limit_bytes is not None:
            config["scoped_memory_configs"] = [
                {"memory_space": 1, "offset": 0, "size": params.vmem_limit_bytes}
            ]
        if params.flags:
            config["flag_configs"] = [_flag(name, value) for name, value in params.flags.items()]
        return json.dumps(config)

    def to_stablehlo(self) -> str:
        """A StableHLO module whose main function is one call of the kernel."""
        operands = [*(("s32", ()) for _ in range(self.dynamic_bounds)), *map(_typed, self.inputs)]
        results = [_typed(one) for one in self.results]
        names = [f"%arg{number}" for number in range(len(operands))]
        lines: list[str] = []
        passed: list[str] = []
        for name, (kind, shape) in zip(names, operands, strict=True):
            if kind == "pred":
                source, target = _tensor("pred", shape), _tensor("s32", shape)
                lines.append(f"{name}_i = stablehlo.convert {name} : ({source}) -> {target}")
                passed.append(f"{name}_i")
            else:
                passed.append(name)
        lines.append(self._call(passed, operands, results))
        returned: list[str] = []
        for number, (kind, shape) in enumerate(results):
            value = f"%0#{number}" if len(results) > 1 else "%0"
            if kind == "pred":
                zero = f"%z{number}"
                whole, flat = _tensor("s32", shape), _tensor("pred", shape)
                lines.append(f"{zero} = stablehlo.constant dense<0> : {whole}")
                lines.append(
                    f"%r{number} = stablehlo.compare NE, {value}, {zero} : ({whole}, {whole}) -> {flat}"
                )
                value = f"%r{number}"
            returned.append(value)
        types = ", ".join(_tensor(*one) for one in results)
        arguments = ", ".join(
            f"{name}: {_tensor(*one)}" for name, one in zip(names, operands, strict=True)
        )
        given = f" {', '.join(returned)} : {types}" if returned else ""
        body = "".join(f"    {line}\n" for line in lines)
        return (
            f"module @{self.name} {{\n"
            f"  func.func public @main({arguments}) -> ({types}) {{\n{body}"
            f"    return{given}\n  }}\n}}\n"
        )

    def _call(self, passed: list[str], operands: list[Any], results: list[Any]) -> str:
        kinds = [("s32" if kind == "pred" else kind, shape) for kind, shape in operands]
        out = [("s32" if kind == "pred" else kind, shape) for kind, shape in results]
        config = json.dumps(self.backend_config())[1:-1].replace('\\"', "\\22")
        attributes = [f'backend_config = "{config}"']
        if self.params.has_side_effects:
            attributes.append("has_side_effect = true")
        attributes.append(f'kernel_name = "{self.name}"')
        metadata = json.dumps(json.dumps(dict(self.metadata)))
        more = ""
        if self.params.has_side_effects is SideEffectType.DATAFLOW_SIDE_EFFECTING:
            more = ', xla_allow_dce_side_effecting_op = "true"'
        attributes.append(f"mhlo.frontend_attributes = {{kernel_metadata = {metadata}{more}}}")
        attributes.append(f"operand_layouts = [{_layouts(kinds)}]")
        if self.aliases:
            entries = ", ".join(
                "#stablehlo.output_operand_alias<output_tuple_indices = "
                f"[{result if len(results) > 1 else ''}], "
                f"operand_index = {operand + self.dynamic_bounds}, operand_tuple_indices = []>"
                for operand, result in self.aliases.items()
            )
            attributes.append(f"output_operand_aliases = [{entries}]")
        attributes.append(f"result_layouts = [{_layouts(out)}]")
        into = ", ".join(_tensor(*one) for one in kinds)
        types = ", ".join(_tensor(*one) for one in out)
        given = types if len(out) == 1 else f"({types})"
        left = ("" if not out else "%0 = ") if len(out) < 2 else f"%0:{len(out)} = "
        return (
            f"{left}stablehlo.custom_call @tpu_custom_call({', '.join(passed)}) "
            f"{{{', '.join(attributes)}}} : ({into}) -> {given}"
        )


def _signed(array: Any) -> Any:
    signed = _SIGNED.get(array.dtype)
    return array if signed is None else array.view(signed)


def _passed_as(one: ShapeDtypeStruct) -> tuple[str, tuple[int, ...]]:
    return (I32 if one.dtype == BOOL else one.dtype).name, one.shape


def _flag(name: str, value: Any) -> dict[str, Any]:
    kind = (
        "boolean" if isinstance(value, bool) else "integer" if isinstance(value, int) else "double"
    )
    return {"flag_type": name, "value": {f"{kind}_value": value}}


def _typed(one: ShapeDtypeStruct) -> tuple[str, tuple[int, ...]]:
    return short_name(one.dtype), one.shape


def _tensor(kind: str, shape: tuple[int, ...]) -> str:
    element = str(PRIMITIVE_TYPES[kind].mlir)
    return f"tensor<{'x'.join([*map(str, shape), element])}>"


def _layouts(types: Sequence[tuple[str, tuple[int, ...]]]) -> str:
    return ", ".join(
        f"dense<{list(range(len(shape)))[::-1]}> : tensor<{len(shape)}xindex>" for _, shape in types
    )
