"""Rows of the instruction table: control flow, warps, textures and what else there is."""

from __future__ import annotations

from mlirhlo.dialects.ptx.forms import Family, Form

ROWS: list[Form] = []

_control = Family("control", ROWS)
_control("bra", "uni?", "l")
_control("brx", "idx uni?", "s:u32 l")
_control("call", "uni?", "g g? g? g?")
_control("ret", "uni?", "")
_control("exit trap brkpt", "", "")
_control("nanosleep", "u32", "s:u32")
_control("pmevent", "mask?", "c:b32")
_control("griddepcontrol", "launch_dependents|wait", "")
_control("setmaxnreg", "inc|dec sync aligned u32", "c:u32")
_control("stacksave", "T=u32|u64", "d:T")
_control("stackrestore", "T=u32|u64", "r:T")
_control("alloca", "T=u32|u64", "d:T s:T c:u32?")

_warp = Family("warp", ROWS)
_warp("shfl", "sync up|down|bfly|idx b32", "d:b32|pred? s:b32 s:b32 s:b32 s:b32")
_warp("vote", "sync all|any|uni pred", "d:pred !s:pred s:b32")
_warp("vote", "sync ballot b32", "d:b32 !s:pred s:b32")
_warp("match", "any sync T=b32|b64", "d:b32 s:T s:b32")
_warp("match", "all sync T=b32|b64", "_d:b32|pred? s:T s:b32")
_warp("activemask", "b32", "d:b32")
_warp("redux", "sync add|min|max T=u32|s32", "d:T s:T s:b32")
_warp("redux", "sync and|or|xor b32", "d:b32 s:b32 s:b32")
_warp("redux", "sync min|max abs? NaN? f32", "d:f32 s:f32 s:b32")
_warp("elect", "sync", "_d:b32|pred s:b32")

_texture = Family("texture", ROWS)
_GEOMETRY = "1d|2d|3d|a1d|a2d|cube|acube|2dms|a2dms"
for _width, _count in (("v4", 4), ("v2", 2)):
    _types = "f16x2" if _width == "v2" else "u32|s32|f32"
    for _result in (f"{{d:T*{_count}}}", "d:b32"):
        _level = "base|level|grad?"
        _head = f"{_level} {_GEOMETRY} " + (f"{_width} " if _result[0] == "{" else "")
        for _rest in ("", " s:b32", " {s:b32*+}", " {s:b32*+} {s:b32*+}", " s:f32"):
            _texture("tex", f"{_head}T={_types}|f16x2 s32|f32", f"{_result} [,]{_rest}")
            for _last in (" s:f32", " {s:b32*+}"):
                _texture("tex", f"{_head}T={_types}|f16x2 s32|f32", f"{_result} [,]{_rest}{_last}")
_texture("tld4", "r|g|b|a 2d|a2d|cube|acube v4 T=u32|s32|f32 f32", "{d:T*4} [,] {s:b32*+}? s:f32?")
_QUERY = (
    "width|height|depth|channel_data_type|channel_order|normalized_coords|array_size|"
    "num_mipmap_levels|num_samples|force_unnormalized_coords|filter_mode|addr_mode_0|addr_mode_1|"
    "addr_mode_2|memory_layout"
)
_texture("txq suq", f"{_QUERY} b32", "d:b32 []")
_texture("txq", "level width|height|depth b32", "d:b32 [] s:b32")
_SURFACE = "1d|2d|3d|a1d|a2d"
_CLAMP = "trap|clamp|zero"
_texture("suld", f"b {_SURFACE} ca|cg|cs|cv? T=b8|b16|b32|b64 {_CLAMP}", "d:T~ [,]")
_texture("suld", f"b {_SURFACE} ca|cg|cs|cv? v2 T=b8|b16|b32|b64 {_CLAMP}", "{d:T~*2} [,]")
_texture("suld", f"b {_SURFACE} ca|cg|cs|cv? v4 T=b8|b16|b32 {_CLAMP}", "{d:T~*4} [,]")
_texture("sust", f"b {_SURFACE} wb|cg|cs|wt? T=b8|b16|b32|b64 {_CLAMP}", "[,] s:T~")
_texture("sust", f"b {_SURFACE} wb|cg|cs|wt? v2 T=b8|b16|b32|b64 {_CLAMP}", "[,] {s:T~*2}")
_texture("sust", f"b {_SURFACE} wb|cg|cs|wt? v4 T=b8|b16|b32 {_CLAMP}", "[,] {s:T~*4}")
_texture("sust", f"p {_SURFACE} wb|cg|cs|wt? b32 {_CLAMP}", "[,] s:b32")
_texture("sust", f"p {_SURFACE} wb|cg|cs|wt? v2 b32 {_CLAMP}", "[,] {s:b32*2}")
_texture("sust", f"p {_SURFACE} wb|cg|cs|wt? v4 b32 {_CLAMP}", "[,] {s:b32*4}")
_texture("sured", f"b {_SURFACE} add|min|max|and|or T=u32|u64|s32|b32|s64 {_CLAMP}", "[,] s:T")
_texture("sured", f"p {_SURFACE} add|min|max|and|or T=b32|b64 {_CLAMP}", "[,] s:T")
