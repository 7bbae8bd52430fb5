"""`jit`: a Python function as one HLO module for each combination of shapes and types.

The whole function compiles or a coded error says which operation of the user's cannot. New shapes
and types compile anew, and the logger `mlirhlo.jit` says so.
"""

# Narrowing by isinstance leaves the parameters of numpy's types and of containers open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, cast

from mlirhlo.debug.options.jax_era import jax_settings
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.attributes.aliasing import (
    BufferDonors,
    BufferDonorsAttr,
    InputOutputAlias,
    InputOutputAliases,
    InputOutputAliasesAttr,
)
from mlirhlo.dialects.hlo.build import paused_gc
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.importing import LATE
from mlirhlo.numpy.array import Array, Data
from mlirhlo.numpy.errors import HloTypeError, HloValueError, problem
from mlirhlo.numpy.operands import as_array
from mlirhlo.numpy.tracing.signature import (
    Call,
    Signature,
    Sorter,
    data_of,
    difference,
    likeness,
    listed,
    spec_of,
)
from mlirhlo.numpy.tracing.trace import Builder, Trace, current, shape_for
from mlirhlo.numpy.tracing.tree import LEAF, Structure, flatten, paths, unflatten

with LATE:
    from mlirhlo import formats
    from mlirhlo.formats import hlo_text, stablehlo
    from mlirhlo.rewrites import hlo_to_stablehlo
    from mlirhlo.runtime import programs


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.integrations.computation import XlaComputation
    from mlirhlo.runtime.programs import Program

LOG = logging.getLogger("mlirhlo.jit")
"""Says which functions compile, and why anew: INFO, and WARNING for one that compiles often."""

OFTEN = 5
"""From so many compilations of one function on, each is a warning."""


class Lowered:
    """A function as a module, for arguments of certain shapes and types; see `Jitted.lower`."""

    def __init__(
        self, op: ModuleOp, sort: Sorter, signature: Signature, result: Structure, name: str
    ) -> None:
        self.op = op
        """The module, in the hlo dialect."""
        self._sort, self._signature, self._result = sort, signature, result
        self._name = name

    def as_text(self, format: str = "hlo") -> str:
        """The module as text: `hlo`, `mlir` or `stablehlo`. Raises `HloError` HLO0502."""
        return _text(self.op, format)

    def compiler_ir(self, dialect: str = "hlo") -> XlaComputation | ModuleOp:
        """The module: a `mlirhlo.Module` with the methods of JAX's `XlaComputation` for `hlo`, xDSL's module
        for `stablehlo`."""
        return (
            hlo_to_stablehlo.convert_to_stablehlo(self.op)
            if dialect == "stablehlo"
            else _computation(self.op)
        )

    def compile(
        self,
        compiler_options: Mapping[str, object] | None = None,
        *,
        platform: str | None = None,
    ) -> Compiled:
        """The module, ready to run on `platform`, as in `jit`.

        `compiler_options`: XLA's debug options, which go over the flags of the environment. Raises
        `HloError` HLO0524 for options that do not fit, HLO0432 and HLO0435 for what has no code.
        """
        program = programs.prepare(self.op, _platform(platform), compiler_options, name=self._name)
        return Compiled(program, self._sort, self._signature, self._result)

    def __repr__(self) -> str:
        module = HloModule(self.op)
        count = sum(1 for _ in module.instructions)
        return f"<Lowered {module.name}: {count} instructions>"


class Compiled:
    """A function ready to run on arguments of certain shapes and types."""

    def __init__(
        self, program: Program, sort: Sorter, signature: Signature, result: Structure
    ) -> None:
        self._program, self._sort = program, sort
        self._signature, self._result = signature, result

    def as_text(self, format: str = "hlo") -> str:
        """The module as the platform optimised it, as text; formats as in `Lowered.as_text`."""
        return _text(self._program.optimized, format)

    def compiler_ir(self) -> XlaComputation:
        """The module as the platform optimised it."""
        return _computation(self._program.optimized)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result for the traced arguments; static ones are left out.

        Raises HLO0623 for other shapes and types than it was compiled for.
        """
        call, wanted = self._sort(args, kwargs), self._signature
        given = call.signature
        fits = given.structure == wanted.structure and all(
            a.shape == b.shape and (a.dtype == b.dtype or a.weak is not None)
            for a, b in zip(given.specs, wanted.specs, strict=True)
        )
        if not fits:
            raise problem(
                HloTypeError,
                "HLO0623",
                f"compiled for {listed(wanted.specs)}, called with {listed(given.specs)}",
                help="call the jitted function itself, which compiles anew",
            )
        return self.run(call.leaves)

    def run(self, leaves: Sequence[Any]) -> Any:
        """The result for leaves that fit."""
        data = [data_of(leaf, s) for leaf, s in zip(leaves, self._signature.specs, strict=True)]
        value = self._program(data)
        results = cast("tuple[Data, ...]", value) if isinstance(value, tuple) else (value,)
        return unflatten(self._result, map(Array.concrete, results))


class Jitted:
    """A function that is traced, compiled and run; made by `jit`."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        static_argnums: int | Sequence[int] = (),
        static_argnames: str | Sequence[str] = (),
        donate_argnums: int | Sequence[int] = (),
        platform: str | None = None,
        compiler_options: Mapping[str, object] | None = None,
    ) -> None:
        try:
            self._python = inspect.signature(function)
        except (TypeError, ValueError):
            raise problem(
                HloTypeError, "HLO0623", f"jit: expects a function of Python's, got {function!r}"
            ) from None
        functools.update_wrapper(self, function)
        self.platform = _platform(platform)
        self._compiler_options = compiler_options
        self._function = function
        inner = function.func if isinstance(function, functools.partial) else function
        self._name: str = getattr(inner, "__name__", type(inner).__name__)
        positional = [
            p.name
            for p in self._python.parameters.values()
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        self._static = set(_names(static_argnames)) | _by_number(
            static_argnums, positional, "static_argnums"
        )
        unknown = self._static - set(self._python.parameters)
        if unknown and not any(p.kind is p.VAR_KEYWORD for p in self._python.parameters.values()):
            raise problem(
                HloValueError,
                "HLO0623",
                f"jit: {self._name} has no parameter {', '.join(sorted(unknown))}",
                help=f"it has {', '.join(self._python.parameters) or 'none'}",
            )
        self._donated = _by_number(donate_argnums, positional, "donate_argnums")
        self._compiled: dict[Signature, Compiled] = {}

    # -------------------------------------------------------------- calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result, from the module for these shapes and types."""
        call = self._sort(args, kwargs)
        if current() is not None:
            # Inside of another trace it is part of that one's program.
            return self._function(*args, **kwargs)
        compiled = self._compiled.get(call.signature)
        if compiled is None:
            self._log(call)
            lowered = self._lower(call)
            compiled = lowered.compile(self._compiler_options, platform=self.platform)
            self._compiled[call.signature] = compiled
        return compiled.run(call.leaves)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The module for arguments of these shapes and types: arrays, or anything with `shape` and
        `dtype`. Nothing runs. Raises `HloError` HLO062x for what cannot compile."""
        return self._lower(self._sort(args, kwargs))

    def cache_size(self) -> int:
        """How many modules were compiled."""
        return len(self._compiled)

    def clear_cache(self) -> None:
        """Forgets all modules."""
        self._compiled.clear()

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    # -------------------------------------------------------------- tracing

    def _sort_traced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """The traced arguments of a call that leaves the static ones away."""
        traced = [p for name, p in self._python.parameters.items() if name not in self._static]
        return self._sorted(self._python.replace(parameters=traced).bind(*args, **kwargs))

    def _sort(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        return self._sorted(self._python.bind(*args, **kwargs))

    def _sorted(self, bound: inspect.BoundArguments) -> Call:
        statics: list[tuple[str, Any]] = []
        traced: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            kind = self._python.parameters[name].kind
            if kind is inspect.Parameter.VAR_KEYWORD:
                inner = cast("dict[str, Any]", value)
                statics += [(key, v) for key, v in inner.items() if key in self._static]
                traced[name] = {k: v for k, v in inner.items() if k not in self._static}
            elif name in self._static:
                statics.append((name, value))
            else:
                traced[name] = value
        for name, value in statics:
            try:
                hash(value)
            except TypeError:
                raise problem(
                    HloValueError,
                    "HLO0623",
                    f"{self._name}: the static argument {name} is a {type(value).__name__}, which"
                    " has no hash",
                    help="pass a tuple instead of a list, or leave it traced",
                ) from None
        leaves: list[Any] = []
        names: list[str] = []
        donated: list[bool] = []
        forms: list[Structure] = []
        for name, value in traced.items():
            found, form = flatten(value)
            leaves += found
            names += paths(form, name)
            donated += [name in self._donated] * len(found)
            forms.append(form)
        structure = Structure(dict, tuple(traced), tuple(forms))
        specs = tuple(
            spec_of(leaf, f"{self._name}: argument {name}")
            for leaf, name in zip(leaves, names, strict=True)
        )
        return Call(Signature(structure, specs, tuple(statics)), names, leaves, donated)

    def _arguments(self, structure: Structure, leaves: list[Array], statics: Any) -> Any:
        traced = unflatten(structure, iter(leaves))
        fixed = dict(statics)
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        skipped = False
        for name, parameter in self._python.parameters.items():
            if parameter.kind is parameter.VAR_POSITIONAL:
                args += traced.get(name, ())
            elif parameter.kind is parameter.VAR_KEYWORD:
                kwargs.update(traced.get(name, {}))
            elif name not in traced and name not in fixed:
                skipped = True  # its default holds; what follows goes by name
            else:
                value = traced[name] if name in traced else fixed[name]
                if skipped or parameter.kind is parameter.KEYWORD_ONLY:
                    kwargs[name] = value
                else:
                    args.append(value)
        names = set(self._python.parameters)
        kwargs.update({name: value for name, value in fixed.items() if name not in names})
        return args, kwargs

    def _lower(self, call: Call) -> Lowered:
        signature = call.signature
        builder = Builder(f"jit_{_identifier(self._name)}", f"jit({self._name})")
        with paused_gc(), Trace(builder) as trace:
            taken: dict[str, int] = {}
            parameters: list[Array] = []
            for number, (spec, label) in enumerate(zip(signature.specs, call.names, strict=True)):
                stem = _identifier(label)
                count = taken[stem] = taken.get(stem, 0) + 1
                name = f"{stem}.{count}"
                value = trace.parameter(number, shape_for(spec.dtype, spec.shape), name, label)
                parameters.append(Array.traced(trace, value, spec.dtype, spec.shape, spec.weak))
            args, kwargs = self._arguments(signature.structure, parameters, signature.statics)
            result = self._function(*args, **kwargs)
            leaves, structure = flatten(result)
            values: list[Any] = []
            for leaf, name in zip(leaves, paths(structure, "the result"), strict=True):
                spec_of(leaf, f"{self._name}: {name}")
                values.append(trace.value(as_array(leaf, self._name)))
            # One array is the root itself, as XLA has it; everything else is a tuple.
            is_single = structure == LEAF and values[0].owner.parent is trace.block
            root = values[0] if is_single else trace.tuple(values)
            builder.add("main", trace.block, root, is_entry=True)
        op = builder.finish()
        _donate(op, call.donated, [v.type for v in values], is_single)

        programs.set_replicas(op, jax_settings())
        return Lowered(op, self._sort_traced, signature, structure, self._name)

    # -------------------------------------------------------------- what the log says

    def _log(self, call: Call) -> None:
        specs = [
            f"{name}: {spec}" for name, spec in zip(call.names, call.signature.specs, strict=True)
        ]
        if not self._compiled:
            LOG.info("Compiling %s for [%s]: first call", self._name, ", ".join(specs))
            return
        closest = max(self._compiled, key=lambda known: likeness(known, call.signature))
        LOG.log(
            logging.WARNING if len(self._compiled) + 1 >= OFTEN else logging.INFO,
            "Compiling %s for [%s]: %s; %d known, the closest %s%s",
            self._name,
            ", ".join(specs),
            difference(closest, call),
            len(self._compiled),
            listed(closest.specs),
            "; every new shape compiles, so pad to fewer of them or mark what varies as static"
            if len(self._compiled) + 1 >= OFTEN
            else "",
        )


def _platform(name: str | None) -> str:
    """The platform of this name. Raises HLO0623."""
    try:
        return programs.platform_named(name)
    except HloError as unknown:
        (said,) = unknown.diagnostics
        raise problem(HloValueError, "HLO0623", f"jit: {said.message}", said.help) from None


def _computation(op: ModuleOp) -> XlaComputation:
    from mlirhlo.integrations.computation import XlaComputation

    return XlaComputation(op)


def _text(op: ModuleOp, format: str) -> str:
    if format == "stablehlo":
        return stablehlo.print_module(hlo_to_stablehlo.convert_to_stablehlo(op))

    options = hlo_text.PrintOptions(large_constants=True)
    return formats.to_bytes(op, format, options=options).decode("utf-8", "surrogateescape")


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _by_number(numbers: int | Sequence[int], names: list[str], what: str) -> set[str]:
    found: set[str] = set()
    try:
        all_of_them = [index(n) for n in ((numbers,) if isinstance(numbers, int) else numbers)]
    except TypeError:
        raise problem(
            HloTypeError, "HLO0623", f"jit: {what} is a number or several, not {numbers!r}"
        ) from None
    for number in all_of_them:
        if not -len(names) <= number < len(names):
            raise problem(
                HloValueError,
                "HLO0623",
                f"jit: {what} has {number}, but there are {len(names)} positional parameters",
            )
        found.add(names[number])
    return found


def _identifier(label: str) -> str:
    """A label with characters that names of instructions may have; as JAX writes it."""
    return "".join(c if (c.isalnum() and c.isascii()) or c in "_-." else "_" for c in label)


def _donate(op: ModuleOp, donated: list[bool], results: list[Any], is_single: bool) -> None:
    """Gives donated parameters to results of their shape; the rest may be used as scratch."""
    module = HloModule(op)
    free = list(range(len(results)))
    aliases: list[InputOutputAlias] = []
    donors: list[tuple[int, tuple[int, ...]]] = []
    for number, parameter in enumerate(module.entry.parameters):
        if not donated[number]:
            continue
        fits = [index for index in free if results[index] == parameter.output.type]
        if fits:
            free.remove(fits[0])
            aliases.append(InputOutputAlias(() if is_single else (fits[0],), number))
        else:
            donors.append((number, ()))
    if aliases:
        module.set("input_output_alias", InputOutputAliasesAttr(InputOutputAliases(tuple(aliases))))
    if donors:
        module.set("buffer_donor", BufferDonorsAttr(BufferDonors(tuple(donors))))


def jit(
    function: Callable[..., Any] | None = None,
    /,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    platform: str | None = None,
    compiler_options: Mapping[str, object] | None = None,
) -> Any:
    """The function, compiled for the shapes and types of each call; also as a decorator.

    `static_argnums`, `static_argnames`: arguments that are fixed while tracing, compared by value.
    `donate_argnums`: arguments whose memory the program may use. `platform`: `cpu` for machine code (the
    default, unless `JAX_PLATFORM_NAME` says otherwise), `interpreter`, or `XLA` where JAX is installed.
    `compiler_options`: XLA's debug options (`{"xla_dump_to": "dumps"}`). Arguments and results are arrays
    in dicts, lists, tuples and dataclasses. Raises `HloError` HLO062x, and HLO0432 and HLO0435 for what
    has no machine code.
    """
    options: dict[str, Any] = {
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "donate_argnums": donate_argnums,
        "platform": platform,
        "compiler_options": compiler_options,
    }
    if function is None:
        return lambda f: Jitted(f, **options)  # pyright: ignore[reportUnknownLambdaType]
    return Jitted(function, **options)
