"""Rows of the instruction table: products of matrices, and what loads and stores their fragments."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import product

from mlirhlo.dialects.ptx.forms import Family, Form

ROWS: list[Form] = []
_matrix = Family("matrix", ROWS)

_BITS = {
    "f16": 16,
    "bf16": 16,
    "tf32": 32,
    "f32": 32,
    "s32": 32,
    "f64": 64,
    "u8": 8,
    "s8": 8,
    "u4": 4,
    "s4": 4,
    "b1": 1,
    "e4m3": 8,
    "e5m2": 8,
    "e3m2": 8,
    "e2m3": 8,
    "e2m1": 8,
}


def _number(choices: Mapping[str, str]) -> Mapping[str, int]:
    return {"N": int(choices["X"][1:])}


_CTA = "shared|shared::cta?"
_matrix("ldmatrix", f"sync aligned m8n8 X=x1|x2|x4 trans? {_CTA} b16", "{d:b32*N} []", _number)
_matrix(
    "ldmatrix",
    f"sync aligned m8n16 X=x1|x2|x4 {_CTA} b8x16 b6x16_p32|b4x16_p64",
    "{d:b32*N} []",
    _number,
)
for _last in ("b8", "b8x16 b6x16_p32|b4x16_p64"):
    _matrix(
        "ldmatrix",
        f"sync aligned m16n16 X=x1|x2 trans {_CTA} {_last}",
        "{d:b32*N} []",
        lambda choices: {"N": 2 * int(choices["X"][1:])},
    )
_matrix("stmatrix", f"sync aligned m8n8 X=x1|x2|x4 trans? {_CTA} b16", "[] {s:b32*N}", _number)
_matrix("stmatrix", f"sync aligned m16n8 X=x1|x2|x4 trans {_CTA} b8", "[] {s:b32*N}", _number)
_matrix("movmatrix", "sync aligned m8n8 trans b16", "d:b32 s:b32")


def fragment_lengths(choices: Mapping[str, str]) -> Mapping[str, int] | None:
    """Registers a thread of each fragment of `mma`: the elements of 32 threads, packed to 32 bits."""
    m, n, k = (int(size) for size in re.findall(r"[0-9]+", choices["M"]))
    if choices["M"] == "m8n8k4" and choices["A"] == "f16":
        # Four products by a quarter of the warp each.
        return {
            "NA": 2,
            "NB": 2,
            "NC": 4 * _BITS[choices["C"]] // 16,
            "ND": 4 * _BITS[choices["D"]] // 16,
        }
    is_packed = choices.get("K") in ("kind::mxf4", "kind::mxf4nvf4")
    shrink = 2 if choices.get("P") else 1

    def length(elements: int, type_: str) -> int:
        bits = 4 if is_packed and type_ == "e2m1" else _BITS[type_]
        return max(1, elements * bits // 32 // max(32, bits))

    return {
        "NA": length(m * k // shrink, choices["A"]),
        "NB": length(k * n, choices["B"]),
        "NC": length(m * n, choices["C"]),
        "ND": length(m * n, choices["D"]),
    }


_MMA = "{d:D*ND} {s:A*NA} {s:B*NB} {s:C*NC}"


def _mma(shapes: str, middle: str, d: str, a: str, b: str, c: str, last: str = "") -> None:
    types = f"D={d} A={a} B={b} C={c}"
    _matrix("mma", f"sync aligned M={shapes} {middle} {types} {last}", _MMA, fragment_lengths)


_LAYOUT = "row|col row|col"
_mma("m8n8k4", _LAYOUT, "f16|f32", "f16", "f16", "f16|f32")
_mma("m16n8k8|m16n8k16", "row col", "f16", "f16", "f16", "f16")
_mma("m16n8k8|m16n8k16", "row col", "f32", "f16", "f16", "f32")
_mma("m16n8k8|m16n8k16", "row col", "f32", "bf16", "bf16", "f32")
_mma("m16n8k4|m16n8k8", "row col", "f32", "tf32", "tf32", "f32")
_mma("m8n8k4|m16n8k4|m16n8k8|m16n8k16", "row col rn|rz|rm|rp?", "f64", "f64", "f64", "f64")
_mma("m8n8k16|m16n8k16|m16n8k32", "row col satfinite?", "s32", "u8|s8", "u8|s8", "s32")
_mma("m8n8k32|m16n8k32|m16n8k64", "row col satfinite?", "s32", "u4|s4", "u4|s4", "s32")
_mma("m8n8k128|m16n8k128|m16n8k256", "row col", "s32", "b1", "b1", "s32", "xor|and popc")
_F8 = "e4m3|e5m2"
_mma("m16n8k16|m16n8k32", "row col", "f32|f16", _F8, _F8, "f32|f16")
_F86 = "e4m3|e5m2|e3m2|e2m3|e2m1"
_mma("m16n8k32", "row col K=kind::f8f6f4", "f32|f16", _F86, _F86, "f32|f16")
_SCALES = " s:b32 {s:b16*2} s:b32 {s:b16*2}"
for _kind, _shape, _types, _vec, _scale in (
    ("kind::mxf8f6f4", "m16n8k32", _F86, "scale_vec::1X?", "ue8m0"),
    ("kind::mxf4", "m16n8k64", "e2m1", "scale_vec::2X?", "ue8m0"),
    ("kind::mxf4nvf4", "m16n8k64", "e2m1", "scale_vec::2X|scale_vec::4X", "ue8m0|ue4m3"),
):
    for _order in (f"K={_kind} block_scale {_vec}",):
        _matrix(
            "mma",
            f"sync aligned M={_shape} row col {_order} D=f32 A={_types} B={_types} C=f32 {_scale}",
            _MMA + _SCALES,
            fragment_lengths,
        )


def _sparse(shapes: str, middle: str, d: str, a: str, b: str, c: str) -> None:
    for opcode in ("sp", "sp::ordered_metadata"):
        _matrix(
            "mma",
            f"P={opcode} sync aligned M={shapes} {middle} D={d} A={a} B={b} C={c}",
            f"{_MMA} s:b32 c:b32",
            fragment_lengths,
        )


_sparse("m16n8k16|m16n8k32", "row col", "f16", "f16", "f16", "f16")
_sparse("m16n8k16|m16n8k32", "row col", "f32", "f16", "f16", "f32")
_sparse("m16n8k16|m16n8k32", "row col", "f32", "bf16", "bf16", "f32")
_sparse("m16n8k8|m16n8k16", "row col", "f32", "tf32", "tf32", "f32")
_sparse("m16n8k32|m16n8k64", "row col satfinite?", "s32", "u8|s8", "u8|s8", "s32")
_sparse("m16n8k64|m16n8k128", "row col satfinite?", "s32", "u4|s4", "u4|s4", "s32")
_sparse("m16n8k64", "row col", "f32|f16", _F8, _F8, "f32|f16")
_sparse("m16n8k64", "row col K=kind::f8f6f4", "f32|f16", _F86, _F86, "f32|f16")

_LARGE = ("m16n16k16", "m8n32k16", "m32n8k16")
_FRAGMENTS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("f16", "bf16", "u8", "s8"), _LARGE),
    "tf32": ("m16n16k8",),
    "f64": ("m8n8k4",),
    **dict.fromkeys(("u4", "s4"), ("m8n8k32",)),
    "b1": ("m8n8k128",),
}
"""Shapes of `wmma` by the type of A and B."""
_SUMS: Mapping[str, tuple[str, ...]] = {
    "f16": _LARGE,
    "f32": (*_LARGE, "m16n16k8"),
    "s32": (*_LARGE, "m8n8k32", "m8n8k128"),
    "f64": _FRAGMENTS["f64"],
}
"""The same by the type of C and D."""
_SHAPE = "m16n16k16|m8n32k16|m32n8k16|m16n16k8|m8n8k4|m8n8k32|m8n8k128"


def _registers(shape: str, which: str, type_: str) -> int | None:
    """Registers a thread of a fragment of `wmma`: A, B, or C and D; None where there is none."""
    m, n, k = map(int, re.findall(r"[0-9]+", shape))
    if shape not in (_FRAGMENTS if which in "ab" else _SUMS).get(type_, ()):
        return None
    if type_ == "f16" and which in "ab":
        return 8  # two threads hold each element
    elements = {"a": m * k, "b": k * n}.get(which, m * n)
    return max(1, elements * _BITS[type_] // 32 // max(32, _BITS[type_]))


def _transferred(which: str) -> Callable[[Mapping[str, str]], Mapping[str, int] | None]:
    def count(choices: Mapping[str, str]) -> Mapping[str, int] | None:
        length = _registers(choices["M"], which, choices["T"])
        return None if length is None else {"N": length}

    return count


def _multiplied(choices: Mapping[str, str]) -> Mapping[str, int] | None:
    types = {"D": choices["D"], "A": choices.get("A", "f16"), "B": choices.get("B", "f16")}
    types["C"] = choices["C"]
    counts = {
        f"N{which}": _registers(choices["M"], which.lower(), type_)
        for which, type_ in types.items()
    }
    found = {name: count for name, count in counts.items() if count is not None}
    return found if len(found) == len(counts) else None


_WHERE = "global|shared|shared::cta?"
for _which, _small in (("a", "row"), ("b", "col")):
    for _layout, _types in (("row|col", "f16|bf16|tf32|f64|u8|s8"), (_small, "u4|s4|b1")):
        _matrix(
            "wmma",
            f"load {_which} sync aligned {_layout} M={_SHAPE} {_WHERE} T={_types}",
            "{d:T*N} [] s:b32?",
            _transferred(_which),
        )
_ENDS = f"sync aligned row|col M={_SHAPE} {_WHERE} T=f16|f32|s32|f64"
_matrix("wmma", f"load c {_ENDS}", "{d:T*N} [] s:b32?", _transferred("c"))
_matrix("wmma", f"store d {_ENDS}", "[] {s:T*N} s:b32?", _transferred("c"))
_WMMA = "{d:D*ND} {s:A*NA} {s:B*NB} {s:C*NC}"
_HALVES = "{d:D*ND} {s:f16x2*NA} {s:f16x2*NB} {s:C*NC}"
_wmma = f"mma sync aligned {_LAYOUT} M={_SHAPE}"
_matrix("wmma", f"{_wmma} D=f16|f32 C=f16|f32 satfinite?", _HALVES, _multiplied)
for _type in ("bf16", "tf32"):
    _matrix("wmma", f"{_wmma} D=f32 A={_type} B={_type} C=f32", _WMMA, _multiplied)
_matrix("wmma", f"{_wmma} RND? D=f64 A=f64 B=f64 C=f64", _WMMA, _multiplied)
for _type in ("u8", "s8"):
    _matrix("wmma", f"{_wmma} D=s32 A={_type} B={_type} C=s32 satfinite?", _WMMA, _multiplied)
_wmma = f"sync aligned row col M={_SHAPE}"
for _type in ("u4", "s4"):
    _matrix("wmma", f"mma {_wmma} D=s32 A={_type} B={_type} C=s32 satfinite?", _WMMA, _multiplied)
_matrix("wmma", f"mma xor|and popc {_wmma} D=s32 A=b1 B=b1 C=s32", _WMMA, _multiplied)


def _group_lengths(choices: Mapping[str, str]) -> Mapping[str, int] | None:
    """Registers a thread of the sums of `wgmma`: 64 rows by N over 128 threads."""
    n = int(choices["M"].split("n")[1].split("k")[0])
    return {"ND": n // 4 if choices["D"] == "f16" else n // 2, "NA": 4}


_NS = tuple(range(8, 264, 8))
_SMALL_NS = tuple(n for n in _NS if n <= 32 or n % 16 == 0)
for _sp in ("", "sp "):
    for _k, _d, _a, _flags in (
        (16, "f16|f32", "f16 f16", 4),
        (16, "f32", "bf16 bf16", 4),
        (8, "f32", "tf32 tf32", 2),
        (32, "f16|f32", f"{_F8} {_F8}", 2),
        (32, "s32", "u8|s8 u8|s8", 0),
        (256, "s32", "b1 b1", 0),
    ):
        _sizes = "|".join(
            f"m64n{n}k{_k * 2 if _sp else _k}" for n in (_NS if _d != "s32" else _SMALL_NS)
        )
        _tail = {"u8|s8 u8|s8": "satfinite?", "b1 b1": "and popc"}.get(_a, "")
        _meta = " s:b32 c:b32" if _sp else ""
        _head = f"mma_async {_sp}sync aligned M={_sizes} D={_d} {_a} {_tail}"
        _end = " !s:pred" + " c:b32" * min(_flags, 2)
        if _sp and _k == 256:
            continue
        _matrix(
            "wgmma",
            _head,
            f"{{d:D*ND}} s:b64 s:b64{_meta}{_end}" + " c:b32" * (_flags // 4 * 2),
            _group_lengths,
        )
        _matrix(
            "wgmma",
            _head,
            f"{{d:D*ND}} {{s:b32*NA}} s:b64{_meta}{_end}" + " c:b32" * (_flags // 4),
            _group_lengths,
        )
_matrix("wgmma", "fence sync aligned", "")
_matrix("wgmma", "commit_group sync aligned", "")
_matrix("wgmma", "wait_group sync aligned", "c:b32")

_G = "cta_group::1|cta_group::2"
_matrix("tcgen05", f"alloc {_G} sync aligned shared::cta? b32", "[] s:b32")
_matrix("tcgen05", f"dealloc {_G} sync aligned b32", "s:b32 s:b32")
_matrix("tcgen05", f"relinquish_alloc_permit {_G} sync aligned", "")
_PER_X = {"16x64b": 1, "16x128b": 2, "16x256b": 4, "32x32b": 1, "16x32bx2": 1}


def _columns(choices: Mapping[str, str]) -> Mapping[str, int] | None:
    count = _PER_X[choices["L"]] * int(choices["X"][1:])
    return {"N": count} if count <= 128 else None


_XS = "X=x1|x2|x4|x8|x16|x32|x64|x128"
_matrix(
    "tcgen05",
    f"ld sync aligned L=16x64b|16x128b|16x256b|32x32b {_XS} pack::16b? b32",
    "{d:b32*N} [t]",
    _columns,
)
_matrix(
    "tcgen05", f"ld sync aligned L=16x32bx2 {_XS} pack::16b? b32", "{d:b32*N} [t] c:b32", _columns
)
_matrix(
    "tcgen05",
    f"st sync aligned L=16x64b|16x128b|16x256b|32x32b {_XS} unpack::16b? b32",
    "[t] {s:b32*N}",
    _columns,
)
_matrix(
    "tcgen05", f"st sync aligned L=16x32bx2 {_XS} unpack::16b? b32", "[t] c:b32 {s:b32*N}", _columns
)
_matrix("tcgen05", "wait::ld|wait::st sync aligned", "")
_matrix("tcgen05", "fence::before_thread_sync|fence::after_thread_sync", "")
_matrix("tcgen05", f"shift {_G} down", "[t]")
for _copy in ("", "b8x16 b6x16_p32|b4x16_p64"):
    _matrix("tcgen05", f"cp {_G} 128x256b|4x256b|128x128b {_copy}", "[t] s:b64")
    _matrix("tcgen05", f"cp {_G} 64x128b warpx2::02_13|warpx2::01_23 {_copy}", "[t] s:b64")
    _matrix("tcgen05", f"cp {_G} 32x128b warpx4 {_copy}", "[t] s:b64")
_COMMIT = f"commit {_G} mbarrier::arrive::one shared::cluster?"
_matrix("tcgen05", f"{_COMMIT} b64", "[]")
_matrix("tcgen05", f"{_COMMIT} multicast::cluster b64", "[] s:b16")
_USES = "collector::a::lastuse|collector::a::discard"
_COLLECT = f"collector::a::fill|collector::a::use|{_USES}?"
for _sparse_word, _metadata in (("", ""), ("sp ", " [t]")):
    for _a_form in ("s:b64", "[t]"):
        _base = f"[t] {_a_form} s:b64{_metadata} s:b32"
        _tails = [("", _COLLECT)]
        if _a_form == "[t]":
            _tails.append(("ashift ", f"{_USES}?"))  # of A in tensor memory
        for (_ashift, _collect), (_group, _lanes), (_kind, _scale) in product(
            _tails,
            (("cta_group::1", 4), ("cta_group::2", 8)),
            (("kind::f16|kind::tf32", " c:b32?"), ("kind::f8f6f4", ""), ("kind::i8", " c:b32?")),
        ):
            _head = f"mma {_sparse_word}{_group} {_kind} {_ashift}{_collect}"
            _scaled = "" if _sparse_word and _kind == "kind::i8" else _scale
            _matrix("tcgen05", _head, f"{_base} !s:pred{_scale}")
            _matrix("tcgen05", _head, f"{_base} {{s:b32*{_lanes}}} !s:pred{_scaled}")
        for _scaled, _vector in (
            ("kind::mxf8f6f4", "scale_vec::1X|block32?"),
            ("kind::mxf4", "scale_vec::2X|block32?"),
            ("kind::mxf4nvf4", "scale_vec::2X|scale_vec::4X|block16|block32"),
        ):
            _matrix(
                "tcgen05",
                f"mma {_sparse_word}{_G} {_scaled} block_scale {_vector} {_COLLECT}",
                f"[t] {_a_form} s:b64{_metadata} s:b32 [t] [t] !s:pred",
            )
        _WS = "|".join(
            f"collector::b{n}::{use}"
            for n in range(4)
            for use in ("fill", "use", "lastuse", "discard")
        )
        _matrix(
            "tcgen05",
            f"mma ws {_sparse_word}cta_group::1 kind::f16|kind::tf32|kind::f8f6f4|kind::i8 {_WS}?",
            f"[t] {_a_form} s:b64{_metadata} s:b32 !s:pred s:b64?",
        )
