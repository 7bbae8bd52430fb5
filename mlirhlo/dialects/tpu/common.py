"""Rows of the dialects that kernels share with other programs: arith, math, vector, memref, scf …"""

from __future__ import annotations

from mlirhlo.dialects.tpu.rows import Row, row

_FASTMATH = "(? fastmath{fastmath:case.arith.fastmath}?)"
_FAST = "fastmath=#arith.fastmath<none>"
_OVERFLOW = "(? overflow{overflowFlags:case.arith.overflow}?)"
_WRAPS = "overflowFlags=#arith.overflow<none>"
_BINARY = "lhs=result, rhs=result -> result"
_CAST = " {input}{dict} : {:input} to {:result}"


def _family(dialect: str, names: str, signature: str, form: str, attributes: str = "") -> list[Row]:
    return [row(f"{dialect}.{name}", signature, form, attributes) for name in names.split()]


_ARITH = [
    row("arith.constant", "-> result", "!constant", "value"),
    *_family(
        "arith",
        "addf subf mulf divf remf maximumf minimumf maxnumf minnumf",
        _BINARY,
        f" {{lhs}}, {{rhs}}{_FASTMATH}{{dict}} : {{:result}}",
        _FAST,
    ),
    *_family(
        "arith",
        "addi subi muli shli",
        _BINARY,
        f" {{lhs}}, {{rhs}}{_OVERFLOW}{{dict}} : {{:result}}",
        _WRAPS,
    ),
    *_family(
        "arith",
        "divsi divui remsi remui ceildivsi ceildivui floordivsi andi ori xori shrsi shrui "
        "maxsi maxui minsi minui",
        _BINARY,
        " {lhs}, {rhs}{dict} : {:result}",
        "isExact?",
    ),
    *_family(
        "arith",
        "mulsi_extended mului_extended",
        "lhs=low, rhs=low -> low, high=low",
        " {lhs}, {rhs}{dict} : {:low}",
    ),
    row(
        "arith.addui_extended",
        "lhs=sum, rhs=sum -> sum, overflow=i1(sum)",
        " {lhs}, {rhs}{dict} : {:sum}, {:overflow}",
    ),
    row(
        "arith.negf",
        "input=result -> result",
        f" {{input}}{_FASTMATH}{{dict}} : {{:result}}",
        _FAST,
    ),
    row(
        "arith.cmpi",
        "lhs, rhs=lhs -> result=i1(lhs)",
        " {predicate:cmpi}, {lhs}, {rhs}{dict} : {:lhs}",
        "predicate",
    ),
    row(
        "arith.cmpf",
        "lhs, rhs=lhs -> result=i1(lhs)",
        f" {{predicate:cmpf}}, {{lhs}}, {{rhs}}{_FASTMATH}{{dict}} : {{:lhs}}",
        f"predicate, {_FAST}",
    ),
    row("arith.select", "condition, on_true=result, on_false=result -> result", "!select"),
    *_family(
        "arith",
        "extsi extui sitofp uitofp fptosi fptoui bitcast index_cast index_castui",
        "input -> result",
        _CAST,
        "nonNeg?",
    ),
    row(
        "arith.trunci",
        "input -> result",
        f" {{input}}{_OVERFLOW}{{dict}} : {{:input}} to {{:result}}",
        _WRAPS,
    ),
    row(
        "arith.extf",
        "input -> result",
        f" {{input}}{_FASTMATH}{{dict}} : {{:input}} to {{:result}}",
        "fastmath?",
    ),
    row(
        "arith.truncf",
        "input -> result",
        f" {{input}}(? {{roundingmode:rounding}}?){_FASTMATH}{{dict}} : {{:input}} to {{:result}}",
        "roundingmode?, fastmath?",
    ),
]

_MATH = [
    *_family(
        "math",
        "absf acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 floor log "
        "log10 log1p log2 round roundeven rsqrt sin sinh sqrt tan tanh trunc",
        "input=result -> result",
        f" {{input}}{_FASTMATH}{{dict}} : {{:result}}",
        _FAST,
    ),
    *_family(
        "math",
        "atan2 copysign powf",
        _BINARY,
        f" {{lhs}}, {{rhs}}{_FASTMATH}{{dict}} : {{:result}}",
        _FAST,
    ),
    *_family(
        "math",
        "isfinite isinf isnan isnormal",
        "input -> result=i1(input)",
        f" {{input}}{_FASTMATH}{{dict}} : {{:input}}",
        _FAST,
    ),
    *_family(
        "math",
        "absi ctlz ctpop cttz",
        "input=result -> result",
        " {input}{dict} : {:result}",
    ),
    row("math.ipowi", _BINARY, " {lhs}, {rhs}{dict} : {:result}"),
    row(
        "math.fpowi",
        "lhs, rhs -> result=lhs",
        f" {{lhs}}, {{rhs}}{_FASTMATH}{{dict}} : {{:lhs}}, {{:rhs}}",
        _FAST,
    ),
    row(
        "math.fma",
        "a=result, b=result, c=result -> result",
        f" {{a}}, {{b}}, {{c}}{_FASTMATH}{{dict}} : {{:result}}",
        _FAST,
    ),
]

_VECTOR = [
    row(
        "vector.load",
        "base, *indices=index -> result",
        " {base}[{indices}]{dict} : {:base}, {:result}",
        "nontemporal~false, alignment?",
    ),
    row(
        "vector.store",
        "value, base, *indices=index",
        " {value}, {base}[{indices}]{dict} : {:base}, {:value}",
        "nontemporal~false, alignment?",
    ),
    row(
        "vector.maskedload",
        "base, *indices=index, mask, pass_thru -> result",
        " {base}[{indices}], {mask}, {pass_thru}{dict} : {:base}, {:mask}, {:pass_thru} into {:result}",
        "alignment?",
    ),
    row(
        "vector.maskedstore",
        "base, *indices=index, mask, value",
        " {base}[{indices}], {mask}, {value}{dict} : {:base}, {:mask}, {:value}",
        "alignment?",
    ),
    *_family("vector", "broadcast shape_cast bitcast", "input -> result", _CAST),
    row(
        "vector.transpose",
        "vector -> result",
        " {vector}, {permutation:i64s}{dict} : {:vector} to {:result}",
        "permutation",
    ),
    row(
        "vector.multi_reduction",
        "source, acc=result -> result",
        " {kind:case.vector.kind}, {source}, {acc}{dict} {reduction_dims:i64s} : {:source} to {:result}",
        "kind, reduction_dims",
    ),
    row(
        "vector.reduction",
        "vector, ?acc=result -> result",
        f" {{kind:case.vector.kind}}, {{vector}}(?, {{acc}}?){_FASTMATH}{{dict}}"
        " : {:vector} into {:result}",
        f"kind, {_FAST}",
    ),
    row(
        "vector.extract",
        "source, *dynamic_position=index -> result",
        " {source}[{static_position:mixed.dynamic_position}]{dict} : {:result} from {:source}",
        "static_position",
    ),
    row(
        "vector.insert",
        "value, dest, *dynamic_position=index -> result=dest",
        " {value}, {dest} [{static_position:mixed.dynamic_position}]{dict} : {:value} into {:dest}",
        "static_position",
    ),
    row(
        "vector.extract_strided_slice",
        "vector -> result",
        " {vector}(! offsets = {offsets:list}, sizes = {sizes:list}, strides = {strides:list}?){dict}"
        " : {:vector} to {:result}",
        "offsets, sizes, strides",
    ),
    row(
        "vector.insert_strided_slice",
        "value, dest -> result=dest",
        " {value}, {dest}(! offsets = {offsets:list}, strides = {strides:list}?){dict}"
        " : {:value} into {:dest}",
        "offsets, strides",
    ),
    row(
        "vector.shuffle",
        "v1, v2 -> result=shuffled(v1)",
        " {v1}, {v2} {mask:i64s}{dict} : {:v1}, {:v2}",
        "mask",
    ),
    row(
        "vector.contract",
        "lhs, rhs, acc -> result=acc",
        "!contract",
        f"indexing_maps, iterator_types, kind=#vector.kind<add>, {_FAST}",
    ),
    row("vector.create_mask", "*operands=index -> result", " {operands}{dict} : {:result}"),
    row(
        "vector.constant_mask",
        "-> result",
        " {mask_dim_sizes:i64s}{dict} : {:result}",
        "mask_dim_sizes",
    ),
    row(
        "vector.from_elements",
        "*elements=element(result) -> result",
        " {elements}{dict} : {:result}",
    ),
    row("vector.step", "-> result", "{dict} : {:result}"),
    row("vector.yield", "*operands", "{dict}(? {operands} : {:operands}?)", terminator=True),
]

_MIXED = "[{static_%s:mixed.%s}]"
_SLICE = " ".join(_MIXED % (part, part) for part in ("offsets", "sizes", "strides"))
_MEMREF = [
    row(
        "memref.load",
        "memref, *indices=index -> result=element(memref)",
        " {memref}[{indices}]{dict} : {:memref}",
        "nontemporal~false, alignment?",
    ),
    row(
        "memref.store",
        "value=element(memref), memref, *indices=index",
        " {value}, {memref}[{indices}]{dict} : {:memref}",
        "nontemporal~false, alignment?",
    ),
    *(
        row(
            f"memref.{name}",
            "*dynamic_sizes=index, *symbols=index -> memref",
            "({dynamic_sizes})(?[{symbols}]?){dict} : {:memref}",
            "alignment?",
            segments=True,
        )
        for name in ("alloca", "alloc")
    ),
    row("memref.dealloc", "memref", " {memref}{dict} : {:memref}"),
    row(
        "memref.dim", "source, index=index -> result=index", " {source}, {index}{dict} : {:source}"
    ),
    row("memref.cast", "input -> result", _CAST),
    row("memref.memory_space_cast", "input -> result", _CAST),
    row("memref.copy", "source, target", " {source}, {target}{dict} : {:source} to {:target}"),
    row(
        "memref.subview",
        "source, *offsets=index, *sizes=index, *strides=index -> result",
        f" {{source}}{_SLICE}{{dict}} : {{:source}} to {{:result}}",
        "static_offsets, static_sizes, static_strides",
        segments=True,
    ),
    row(
        "memref.extract_aligned_pointer_as_index",
        "source -> result",
        " {source}{dict} : {:source} -> {:result}",
    ),
    row("memref.alloca_scope", "-> *results", "!alloca_scope", regions=1),
    row(
        "memref.alloca_scope.return",
        "*results",
        "{dict}(? {results} : {:results}?)",
        terminator=True,
    ),
]

_CONTROL = [
    row("builtin.module", "", "!module", "sym_name?, sym_visibility?", regions=1),
    row(
        "func.func",
        "",
        "!function",
        "sym_name, function_type, sym_visibility?, arg_attrs?, res_attrs?, no_inline?",
        regions=1,
    ),
    row(
        "func.call", "*operands -> *results", "!call", "callee, arg_attrs?, res_attrs?, no_inline?"
    ),
    row("func.return", "*operands", "!return", terminator=True),
    row("scf.yield", "*results", "{dict}(? {results} : {:results}?)", terminator=True),
    row(
        "scf.condition",
        "condition=i1, *arguments",
        "({condition}){dict}(? {arguments} : {:arguments}?)",
        terminator=True,
    ),
    row("scf.if", "condition=i1 -> *results", "!if", regions=2),
    row("scf.for", "lower, upper, step, *initial -> *results", "!for", "unsignedCmp?", regions=1),
    row("scf.while", "*initial -> *results", "!while", regions=2),
    row("scf.index_switch", "argument=index -> *results", "!index_switch", "cases", regions=-1),
    row("scf.execute_region", "-> *results", "!execute_region", "no_inline?", regions=1),
    row(
        "scf.parallel",
        "*lower, *upper, *step, *initial -> *results",
        "!parallel",
        segments=True,
        regions=1,
    ),
    row("scf.reduce", "*operands", "!reduce", regions=-1, terminator=True),
    row("scf.reduce.return", "result", " {result}{dict} : {:result}", terminator=True),
    row(
        "affine.for",
        "*lower, *upper, *initial -> *results",
        "!affine_for",
        "lowerBoundMap, upperBoundMap, step",
        segments=True,
        regions=1,
    ),
    row("affine.yield", "*operands", "{dict}(? {operands} : {:operands}?)", terminator=True),
    row("cf.assert", "condition=i1", " {condition}, {msg:text}{dict}", "msg"),
    row("cf.br", "*operands", "!branch", terminator=True),
    row(
        "cf.cond_br",
        "condition=i1, *on_true, *on_false",
        "!cond_branch",
        "branch_weights?",
        segments=True,
        terminator=True,
    ),
    row("ub.poison", "-> result", "{dict} : {:result}", "value?"),
]

COMMON: tuple[Row, ...] = (*_ARITH, *_MATH, *_VECTOR, *_MEMREF, *_CONTROL)
"""Rows of the dialects that are not Mosaic's own."""
