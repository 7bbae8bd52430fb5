"""Rows of the instruction table: memory, atomics, asynchronous copies, barriers."""

from __future__ import annotations

from collections.abc import Mapping

from mlirhlo.dialects.ptx.forms import Family, Form

ROWS: list[Form] = []

_TYPES = "T=DATA|b128"


def _vector(choices: Mapping[str, str]) -> Mapping[str, int] | None:
    """At most 128 bits."""
    length, width = int(choices["V"][1:]), int(choices["T"].lstrip("busf"))
    return {"N": length} if length * width <= 128 else None


def _parts(choices: Mapping[str, str]) -> Mapping[str, int]:
    return {"N": int(choices["V"][1:])}


_memory = Family("memory", ROWS)
_HINTS = "EVICT? L2::cache_hint? PREFETCH?"
_POLICY = "s:b64?L2::cache_hint"


def _load(modifiers: str, hints: str = "") -> None:
    """A load of one element, and of a vector."""
    _memory("ld", f"{modifiers} {hints} {_TYPES}", f"d:T~ [] {_POLICY}")
    _memory("ld", f"{modifiers} {hints} V=v2|v4|v8 {_TYPES}", f"{{_d:T~*N}} [] {_POLICY}", _vector)


_WIDE = "V=v8 T=b32|u32|s32|f32", "V=v4 T=b64|u64|s64|f64"
"""Vectors of 256 bits, in global memory."""

_SPACES = "const|global|local|param|param::entry|param::func|SHARED"
_load(f"weak? {_SPACES}? ca|cg|cs|lu|cv?")
_load("weak? global?", _HINTS)
_load("weak? global? ca|cg|cs|lu|cv?", "L2::cache_hint? PREFETCH?")
_load("volatile local|SHARED")
_load("volatile global?", "PREFETCH?")
_load("relaxed|acquire SCOPE global|SHARED?")
_load("relaxed|acquire SCOPE global?", _HINTS)
_load("global nc", _HINTS)
_load("global ca|cg|cs? nc", "L2::cache_hint? PREFETCH?")
for _wide in _WIDE:
    for _words in (
        *(
            f"{_order} EVICT2? {_HINTS}"
            for _order in ("weak? global?", "relaxed|acquire SCOPE global?")
        ),
        "weak? global? EVICT2? ca|cg|cs|lu|cv? L2::cache_hint? PREFETCH?",
        "volatile global? PREFETCH?",
        f"global nc EVICT2? {_HINTS}",
        "global ca|cg|cs? nc EVICT2? L2::cache_hint? PREFETCH?",
    ):
        _memory("ld", f"{_words} {_wide}", f"{{_d:T~*N}} [] {_POLICY}", _parts)
_memory("ld", f"mmio relaxed sys global? {_TYPES}", "d:T~ []")
_memory("ldu", f"global? {_TYPES}", "d:T~ []")
_memory("ldu", f"global? V=v2|v4 {_TYPES}", "{_d:T~*N} []", _vector)


def _store(modifiers: str, hints: str = "") -> None:
    _memory("st", f"{modifiers} {hints} {_TYPES}", f"[] s:T~ {_POLICY}")
    _memory("st", f"{modifiers} {hints} V=v2|v4|v8 {_TYPES}", f"[] {{s:T~*N}} {_POLICY}", _vector)


_STORES = "global|local|param|param::func|SHARED"
_store(f"weak? {_STORES}? wb|cg|cs|wt?")
_store("weak? global?", "EVICT? L2::cache_hint?")
_store("weak? global? wb|cg|cs|wt?", "L2::cache_hint?")
_store("volatile global|local|SHARED?")
_store("relaxed|release SCOPE global|SHARED?")
_store("relaxed|release SCOPE global?", "EVICT? L2::cache_hint?")
for _wide in _WIDE:
    for _words in (
        "weak? global? EVICT? EVICT2? L2::cache_hint?",
        "relaxed|release SCOPE global? EVICT? EVICT2? L2::cache_hint?",
        "weak? global? EVICT2? wb|cg|cs|wt? L2::cache_hint?",
        "volatile global?",
    ):
        _memory("st", f"{_words} {_wide}", f"[] {{s:T~*N}} {_POLICY}", _parts)
_memory("st", f"mmio relaxed sys global? {_TYPES}", "[] s:T~")
_memory("prefetch", "global|local? L1|L2", "[]")
_memory("prefetch", "global? L2::evict_last|L2::evict_normal", "[]")
_memory("prefetch", "const|param|param::entry? tensormap", "[]")
_memory("prefetchu", "L1", "[]")
_memory("applypriority", "global? L2::evict_normal", "[] c:u32")
_memory("discard", "global? L2", "[] c:u32")
_PRIMARY = "L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged"
_memory(
    "createpolicy",
    f"fractional {_PRIMARY} L2::evict_first|L2::evict_unchanged? b64",
    "d:b64 s:f32?",
)
_memory(
    "createpolicy",
    f"range global? {_PRIMARY} L2::evict_first|L2::evict_unchanged? b64",
    "d:b64 [] s:b32 s:b32",
)
_memory("createpolicy", "cvt L2 b64", "d:b64 s:b64")
_VECTORS = (
    *(("f16|bf16", "v2|v4|v8", "T"), ("f16x2|bf16x2", "v2|v4", "T"), ("e4m3|e5m2", "v4|v8", "b8")),
    *(("e4m3x2|e5m2x2", "v2|v4|v8", "T"), ("e4m3x4|e5m2x4", "v2|v4", "T")),
)
"""Types of vectors of `multimem`, their sizes, and the registers they are in."""
_PACKED = "f16x2|bf16x2|e4m3x4|e5m2x4"
"""Those that may stand alone."""


def _multimem(head: str, alone: str, vector: str) -> None:
    for operation, types in (
        ("min|max", "u32|u64|s32|s64"),
        ("add", "u32|u64|s32|f32|f64"),
        ("and|or|xor", "b32|b64"),
    ):
        _memory("multimem", f"{head} {operation} T={types}", alone)
    _memory("multimem", f"{head} add V=v2|v4 T=f32", vector, _parts)


for _weak in ("weak?", "relaxed|acquire SCOPE"):
    _head = f"ld_reduce {_weak} global?"
    _multimem(_head, "d:T []", "{d:T*N} []")
    for _types, _sizes, _kind in _VECTORS:
        _wider = "acc::f32?" if "f16" in _types else "acc::f16?"
        for _operation in ("min|max", f"add {_wider}"):
            _words = f"{_head} {_operation} V={_sizes} T={_types}"
            _memory("multimem", _words, f"{{d:{_kind}*N}} []", _parts)
    _memory("multimem", f"{_head} min|max T={_PACKED}", "d:T []")
    _memory("multimem", f"{_head} add acc::f32? T=f16x2|bf16x2", "d:T []")
    _memory("multimem", f"{_head} add acc::f16? T=e4m3x4|e5m2x4", "d:T []")
for _weak in ("weak?", "relaxed|release SCOPE"):
    _head = f"st {_weak} global?"
    _memory("multimem", f"{_head} T=b32|b64|u32|u64|s32|s64|f32|f64|{_PACKED}", "[] s:T")
    for _types, _sizes, _kind in (*_VECTORS, ("f32", "v2|v4", "T")):
        _memory("multimem", f"{_head} V={_sizes} T={_types}", f"[] {{s:{_kind}*N}}", _parts)
for _sem in ("", "relaxed|release SCOPE"):
    _head = f"red {_sem} global?"
    _multimem(_head, "[] s:T", "[] {s:T*N}")
    _memory("multimem", f"{_head} add T=f16x2|bf16x2", "[] s:T")
    for _types, _sizes, _ in _VECTORS[:2]:
        _memory("multimem", f"{_head} add|min|max V={_sizes} T={_types}", "[] {s:T*N}", _parts)

_atomic = Family("atomic", ROWS)
_WHERE = "SEM? SCOPE? global|SHARED?"
_WHERE_RED = "relaxed|release? SCOPE? global|SHARED?"
_HINT = "L2::cache_hint?"
for _op, _head, _dest in (("atom", _WHERE, "_d:T "), ("red", _WHERE_RED, "")):
    for _operation in (
        *("and|or|xor {} T=b32|b64", "add {} T=u32|s32|u64|s64|f32|f64"),
        *(
            "inc|dec {} T=u32",
            "min|max {} T=u32|s32|u64|s64",
            "add noftz {} T=f16|f16x2|bf16|bf16x2",
        ),
    ):
        _atomic(_op, f"{_head} {_operation.format(_HINT)}", f"{_dest}[] s:T s:b64?L2::cache_hint")
    _vectors = f"{'SEM' if _op == 'atom' else 'relaxed|release'}? SCOPE? global? "
    _from = "{_d:T*N} " if _op == "atom" else ""
    _atomic(
        _op,
        f"{_vectors}add noftz? {_HINT} V=v2|v4 T=f32",
        f"{_from}[] {{s:T*N}} s:b64?L2::cache_hint",
        _parts,
    )
    _atomic(
        _op,
        f"{_vectors}add|min|max noftz {_HINT} V=v2|v4|v8 T=f16|f16x2|bf16|bf16x2",
        f"{_from}[] {{s:T*N}} s:b64?L2::cache_hint",
        _parts,
    )
_atomic("atom", f"{_WHERE} exch {_HINT} T=b32|b64|b128", "_d:T [] s:T s:b64?L2::cache_hint")
_atomic(
    "atom",
    f"{_WHERE} cas {_HINT} T=b16|b32|b64|b128|u32|u64|s32|s64",
    "_d:T [] s:T s:T s:b64?L2::cache_hint",
)
_BYTES = "mbarrier::complete_tx::bytes"
_atomic(
    "st", f"async weak? shared::cluster? {_BYTES}? T=b32|b64|u32|u64|s32|s64|f32|f64", "[] s:T []"
)
_atomic(
    "st",
    f"async weak? shared::cluster? {_BYTES}? V=v2|v4 T=b32|b64|u32|u64|s32|s64|f32|f64",
    "[] {s:T*N} []",
    _parts,
)
_atomic(
    "st", "async mmio? release? SCOPE? global? T=b8|b16|b32|b64|u32|u64|s32|s64|f32|f64", "[] s:T"
)
_RED_ASYNC = f"async relaxed cluster shared::cluster? {_BYTES}"
_atomic("red", f"{_RED_ASYNC} inc|dec T=u32", "[] s:T []?")
_atomic("red", f"{_RED_ASYNC} min|max T=u32|s32", "[] s:T []?")
_atomic("red", f"{_RED_ASYNC} and|or|xor T=b32", "[] s:T []?")
_atomic("red", f"{_RED_ASYNC} add T=u32|s32|u64", "[] s:T []?")
_atomic("red", "async mmio? release? SCOPE? global? add T=u32|s32|u64|s64", "[] s:T")

_barrier = Family("barrier", ROWS)
for _op, _aligned in (("barrier", "aligned?"), ("bar", "")):
    _barrier(_op, f"cta? sync {_aligned}", "s:b32 s:b32?")
    _barrier(_op, f"cta? arrive {_aligned}", "s:b32 s:b32")
    _barrier(_op, f"cta? red popc {_aligned} u32", "d:u32 s:b32 !s:pred")
    _barrier(_op, f"cta? red popc {_aligned} u32", "d:u32 s:b32 s:b32 !s:pred")
    _barrier(_op, f"cta? red and|or {_aligned} pred", "d:pred s:b32 !s:pred")
    _barrier(_op, f"cta? red and|or {_aligned} pred", "d:pred s:b32 s:b32 !s:pred")
_barrier("bar", "warp sync", "s:b32")
_barrier("barrier", "cluster arrive release|relaxed? aligned?", "")
_barrier("barrier", "cluster wait acquire? aligned?", "")
_barrier("membar", "cta|gl|sys", "")
_barrier("membar", "proxy alias|async|async::generic", "")
_barrier("fence", "sc|acq_rel|acquire|release? SCOPE", "")
_barrier("fence", "acquire sync_restrict::shared::cluster cluster", "")
_barrier("fence", "release sync_restrict::shared::cta cluster", "")
_barrier("fence", "mbarrier_init release cluster", "")
_barrier("fence", "proxy alias|async|async::generic", "")
_barrier("fence", "proxy async global|SHARED", "")
_barrier("fence", "proxy async::global|async::shared::cta|async::shared::cluster", "")
_barrier("fence", "proxy tensormap::generic release SCOPE", "")
_barrier("fence", "proxy tensormap::generic acquire SCOPE", "[] c:b32")
_barrier("fence", "proxy async::generic acquire sync_restrict::shared::cluster cluster", "")
_barrier("fence", "proxy async::generic release sync_restrict::shared::cta cluster", "")

_async = Family("async", ROWS)
_CTA = "shared|shared::cta"
_async("mbarrier", f"init {_CTA}? b64", "[] s:b32")
_async("mbarrier", f"inval {_CTA}? b64", "[]")
for _order in ("", "relaxed cta|cluster"):
    _async("mbarrier", f"expect_tx|complete_tx {_order} SHARED? b64", "[] s:b32")
for _order in ("", "release|relaxed cta|cluster"):
    for _where, _state in ((f"{_CTA}?", "_d:b64"), ("shared::cluster", "_")):
        _async("mbarrier", f"arrive|arrive_drop {_order} {_where} b64", f"{_state} [] s:b32?")
        _async(
            "mbarrier", f"arrive|arrive_drop expect_tx {_order} {_where} b64", f"{_state} [] s:b32"
        )
for _order in ("", "release cta"):
    _head = f"arrive|arrive_drop noComplete {_order} {_CTA}? b64"
    _async("mbarrier", _head, "_d:b64 [] s:b32")
for _order in ("", "acquire|relaxed cta|cluster"):
    for _parity, _state in (("", "s:b64"), ("parity", "s:b32")):
        _async("mbarrier", f"test_wait {_parity} {_order} {_CTA}? b64", f"d:pred [] {_state}")
        _async("mbarrier", f"try_wait {_parity} {_order} {_CTA}? b64", f"d:pred [] {_state} s:b32?")
_async("mbarrier", "pending_count b64", "d:b32 s:b64")
_async("cp", f"async mbarrier arrive noinc? {_CTA}? b64", "[]")
_async(
    "cp", f"async ca|cg {_CTA} global {_HINT} PREFETCH?", "[] [] c:b32 s:b32? s:b64?L2::cache_hint"
)
_async(
    "cp", f"async ca|cg {_CTA} global {_HINT} PREFETCH?", "[] [] c:b32 !s:pred s:b64?L2::cache_hint"
)
_async("cp", "async commit_group", "")
_async("cp", "async wait_group", "c:b32")
_async("cp", "async wait_all", "")
_CAST = "multicast::cluster?"
_async(
    "cp",
    f"async bulk shared::cluster global {_BYTES} {_CAST} {_HINT}",
    "[] [] s:b32 [] s:b16?multicast::cluster s:b64?L2::cache_hint",
)
_async(
    "cp", f"async bulk shared::cta global {_BYTES} {_HINT}", "[] [] s:b32 [] s:b64?L2::cache_hint"
)
_async("cp", f"async bulk shared::cluster shared::cta {_BYTES}", "[] [] s:b32 []")
_async(
    "cp", f"async bulk global shared::cta bulk_group {_HINT}", "[] [] s:b32 s:b64?L2::cache_hint"
)
_async(
    "cp", f"async bulk global shared::cta bulk_group {_HINT} cp_mask", "[] [] s:b32 s:b64? s:b16"
)
_async("cp", f"async bulk prefetch L2 global {_HINT}", "[] s:b32 s:b64?L2::cache_hint")
_OPS = "and|or|xor|add|inc|dec|min|max"
_KINDS = "f16|bf16|b32|u32|s32|b64|u64|s64|f32|f64"
_async(
    "cp",
    f"reduce async bulk shared::cluster shared::cta {_BYTES} {_OPS} b32|u32|s32|u64|b64|s64",
    "[] [] s:b32 []",
)
_async(
    "cp",
    f"reduce async bulk global shared::cta bulk_group {_HINT} {_OPS} {_KINDS}",
    "[] [] s:b32 s:b64?L2::cache_hint",
)
_async(
    "cp",
    f"reduce async bulk global shared::cta bulk_group {_HINT} add noftz f16|bf16",
    "[] [] s:b32 s:b64?L2::cache_hint",
)
_LOAD = "tile|tile::gather4|im2col|im2col::w|im2col::w::128?"
_GROUP = "cta_group::1|cta_group::2?"
_OFFSETS = "{s:b16*+}?im2col|im2col::w|im2col::w::128"
for _to, _cast in (("shared::cluster", _CAST), ("shared::cta", "")):
    _head = f"async bulk tensor DIM {_to} global {_LOAD} {_BYTES} {_cast} {_GROUP} {_HINT}"
    _mask = " s:b16?multicast::cluster" if _cast else ""
    _async("cp", _head, f"[] [,] [] {_OFFSETS}{_mask} s:b64?L2::cache_hint")
_SAVE = "tile|tile::scatter4|im2col_no_offs?"
_async(
    "cp",
    f"async bulk tensor DIM global shared::cta {_SAVE} bulk_group {_HINT}",
    "[,] [] s:b64?L2::cache_hint",
)
_async(
    "cp",
    f"reduce async bulk tensor DIM global shared::cta {_OPS} tile|im2col_no_offs? bulk_group {_HINT}",
    "[,] [] s:b64?L2::cache_hint",
)
_async(
    "cp",
    f"async bulk prefetch tensor DIM L2 global {_LOAD} {_HINT}",
    f"[,] {_OFFSETS} s:b64?L2::cache_hint",
)
_async("cp", "async bulk commit_group", "")
_async("cp", "async bulk wait_group read?", "c:b32")
_MAP = "global|shared::cta?"
_async("tensormap", f"replace tile global_address {_MAP} b1024 b64", "[] s:b64")
_async("tensormap", f"replace tile rank {_MAP} b1024 b32", "[] s:b32")
_async(
    "tensormap",
    f"replace tile box_dim|global_dim|element_stride {_MAP} b1024 b32",
    "[] c:b32 s:b32",
)
_async("tensormap", f"replace tile global_stride {_MAP} b1024 b64", "[] c:b32 s:b64")
_async(
    "tensormap",
    f"replace tile elemtype|interleave_layout|swizzle_mode|swizzle_atomicity|fill_mode {_MAP} b1024 b32",
    "[] c:b32",
)
_async(
    "tensormap",
    "cp_fenceproxy global shared::cta tensormap::generic release SCOPE sync aligned",
    "[] [] c:b32",
)
_CANCEL = f"try_cancel async shared::cta? {_BYTES}"
_async("clusterlaunchcontrol", f"{_CANCEL} multicast::cluster::all? b128", "[] []")
_async("clusterlaunchcontrol", "query_cancel is_canceled pred b128", "d:pred s:b128")
_async("clusterlaunchcontrol", "query_cancel get_first_ctaid v4 b32 b128", "{_d:b32*4} s:b128")
_async(
    "clusterlaunchcontrol",
    "query_cancel get_first_ctaid::x|get_first_ctaid::y|get_first_ctaid::z b32 b128",
    "d:b32 s:b128",
)
