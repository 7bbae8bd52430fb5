"""The header of a program compiled ahead of time: functions and sizes for C, a class for C++."""

from __future__ import annotations

from mlirhlo.aot.compiler import Ahead
from mlirhlo.aot.runtime_ir import ALIGNMENT
from mlirhlo.aot.signature import Leaf, Variable

_SHARED = """#ifndef MLIRHLO_AOT_TYPES
#define MLIRHLO_AOT_TYPES
typedef struct { float re, im; } mlirhlo_c64;
typedef struct { double re, im; } mlirhlo_c128;

/* Threads of your own. `run` calls task(job, 0) ... task(job, count - 1), in any order and at the same time,
   and returns when all have returned. */
typedef struct {
  void *pool;
  void (*run)(void *pool, void (*task)(void *job, int64_t number), void *job, int64_t count);
  int32_t threads;
} mlirhlo_thread_pool;
#endif
"""


def header(ahead: Ahead, cpp_class: str = "") -> str:
    """The text of `NAME.h`. `cpp_class`: the class's name, with namespaces; the program's where empty."""
    name, upper = ahead.name, ahead.name.upper()
    arguments, results = ahead.signature.arguments, ahead.signature.results
    guard = f"MLIRHLO_AOT_{upper}_H"
    lines = [
        f"/* {name}, compiled ahead of time for {ahead.triple}: {', '.join(ahead.variants)}. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#include <stdbool.h>",
        "#include <stddef.h>",
        "#include <stdint.h>",
        "",
        _SHARED,
        f"#define {upper}_ALIGNMENT {ALIGNMENT}",
        f"#define {upper}_ARENA_BYTES {ahead.arena_bytes}",
        f"#define {upper}_NUM_REPLICAS {ahead.replicas}",
        f"#define {upper}_NUM_PARTITIONS {ahead.partitions}",
        f"#define {upper}_NUM_ARGUMENTS {len(arguments)}",
        f"#define {upper}_NUM_RESULTS {len(results)}",
    ]
    for kind, leaves in (("ARGUMENT", arguments), ("RESULT", results)):
        for number, leaf in enumerate(leaves):
            shape = leaf.shape.to_string()
            lines.append(
                f"#define {upper}_{kind}_{number}_BYTES {leaf.size} /* {leaf.name}: {shape} */"
            )
    lines += ["", "#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    lines += [
        "/* Runs on arrays of the numbers and sizes above, in row-major order unless a layout says otherwise;",
        f"   `arena` is {upper}_ARENA_BYTES of memory for this call alone, at a multiple of {upper}_ALIGNMENT.",
        "   `pool` may be NULL. Returns 0, or a status that the next function explains. Any number of threads",
        "   may call it at the same time. */",
        f"int32_t {name}_run(const void *const *arguments, void *const *results, void *arena,",
        f"{' ' * (len(name) + 13)}const mlirhlo_thread_pool *pool);",
        f"const char *{name}_error(int32_t status);",
        "/* The processor whose code runs here; NULL where none does. */",
        f"const char *{name}_variant(void);",
        "/* Threads of the process's own pool, which runs what has no pool of yours. */",
        f"void {name}_set_threads(int32_t count);",
    ]
    if ahead.weights:
        lines += [
            f"/* Maps {name}.weights into memory, once in a process; 0, or a status. */",
            f"int32_t {name}_load_weights(const char *path);",
        ]
    lines += ["", "#ifdef __cplusplus", "}", "#endif", "", *_typed_call(ahead), ""]
    lines += _class(ahead, cpp_class)
    return "\n".join([*lines, "", f"#endif /* {guard} */", ""])


def _typed_call(ahead: Ahead) -> list[str]:
    """A function with a parameter for every array."""
    arguments, results = ahead.signature.arguments, ahead.signature.results
    typed = [f"const {leaf.c_type} *{leaf.name}" for leaf in arguments]
    typed += [f"{leaf.c_type} *{leaf.name}" for leaf in results]
    typed += ["void *arena", "const mlirhlo_thread_pool *pool"]
    inputs = ", ".join(leaf.name for leaf in arguments) or "0"
    outputs = ", ".join(leaf.name for leaf in results) or "0"
    return [
        "/* The same with a parameter for every array. */",
        f"static inline int32_t {ahead.name}_call(\n    " + ",\n    ".join(typed) + ") {",
        f"  const void *const arguments_[] = {{{inputs}}};",
        f"  void *const results_[] = {{{outputs}}};",
        f"  return {ahead.name}_run(arguments_, results_, arena, pool);",
        "}",
    ]


_CLASS = """#ifdef __cplusplus
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

{opening}
/* One set of arguments, results and temporaries. Instances are independent: each belongs to one thread at a
   time, any number run at once. */
class {name} {{
 public:
  enum class AllocMode {{ ARGS_RESULTS_AND_TEMPS, RESULTS_AND_TEMPS_ONLY }};

  static constexpr size_t kNumArgs = {arguments};
  static constexpr size_t kNumResults = {results};
  static constexpr size_t kNumVariables = {variables};
  static constexpr size_t kArenaBytes = {arena};
  static constexpr size_t kAlignment = {alignment};

  static size_t ArgSize(size_t index) {{
    static const size_t sizes[] = {{{argument_sizes}}};
    return sizes[index];
  }}
  static size_t ResultSize(size_t index) {{
    static const size_t sizes[] = {{{result_sizes}}};
    return sizes[index];
  }}

  explicit {name}(AllocMode mode = AllocMode::ARGS_RESULTS_AND_TEMPS) {{
    const bool all = mode == AllocMode::ARGS_RESULTS_AND_TEMPS;
    size_t total = kArenaBytes;
    for (size_t i = 0; all && i < kNumArgs; ++i) total += Padded(ArgSize(i));
    for (size_t i = 0; i < kNumResults; ++i) total += Padded(ResultSize(i));
    memory_ = std::malloc(total + kAlignment);
    if (memory_ == nullptr) throw std::bad_alloc();
    char *next = static_cast<char *>(memory_);
    next += (kAlignment - reinterpret_cast<uintptr_t>(next) % kAlignment) % kAlignment;
    for (size_t i = 0; all && i < kNumArgs; ++i) {{
      args_[i] = next;
      next += Padded(ArgSize(i));
    }}
    for (size_t i = 0; i < kNumResults; ++i) {{
      results_[i] = next;
      next += Padded(ResultSize(i));
    }}
    arena_ = next;
  }}
  ~{name}() {{ std::free(memory_); }}
  {name}(const {name} &) = delete;
  {name} &operator=(const {name} &) = delete;

  /* Computes the results; false where that failed, which error_msg() explains. */
  bool Run() {{
    const int32_t status = {program}_run(args_, results_, arena_, pool_);
    error_ = {program}_error(status);
{updates}    return status == 0;
  }}
  const std::string &error_msg() const {{ return error_; }}
  /* The pool has to live as long as runs use it; nullptr: the process's own. */
  void set_thread_pool(const mlirhlo_thread_pool *pool) {{ pool_ = pool; }}
{weights}
  void *arg_data(size_t index) {{ return const_cast<void *>(args_[index]); }}
  void set_arg_data(size_t index, const void *data) {{ args_[index] = data; }}
  void *result_data(size_t index) {{ return results_[index]; }}
  const void *result_data(size_t index) const {{ return results_[index]; }}
{accessors}
 private:
  static size_t Padded(size_t size) {{
    const size_t least = size == 0 ? 1 : size;
    return (least + kAlignment - 1) / kAlignment * kAlignment;
  }}

  const void *args_[{argument_slots}] = {{}};
  void *results_[{result_slots}] = {{}};
  void *arena_ = nullptr;
  void *memory_ = nullptr;
  const mlirhlo_thread_pool *pool_ = nullptr;
  std::string error_;
}};
{closing}
#endif /* __cplusplus */"""

_WEIGHTS = """  /* Maps the file of weights, once in a process, before the first run. */
  bool LoadWeights(const char *path) {{
    const int32_t status = {program}_load_weights(path);
    error_ = {program}_error(status);
    return status == 0;
  }}
"""


def _class(ahead: Ahead, cpp_class: str) -> list[str]:
    *spaces, name = (cpp_class or f"mlirhlo_aot::{_camel(ahead.name)}").split("::")
    arguments, results = ahead.signature.arguments, ahead.signature.results
    accessors = [_accessors(leaf, n, "arg") for n, leaf in enumerate(arguments)]
    accessors += [_accessors(leaf, n, "result") for n, leaf in enumerate(results)]
    variables = ahead.signature.variables
    accessors += [_accessors(arguments[v.argument], v.argument, "var") for v in variables]
    text = _CLASS.format(
        opening="".join(f"namespace {space} {{\n" for space in spaces),
        closing="".join(f"}}  // namespace {space}\n" for space in reversed(spaces)),
        name=name,
        program=ahead.name,
        updates="".join(map(_update, variables)),
        variables=len(variables),
        arguments=len(arguments),
        results=len(results),
        argument_slots=max(len(arguments), 1),
        result_slots=max(len(results), 1),
        arena=ahead.arena_bytes,
        alignment=ALIGNMENT,
        argument_sizes=", ".join(str(leaf.size) for leaf in arguments) or "0",
        result_sizes=", ".join(str(leaf.size) for leaf in results) or "0",
        weights=_WEIGHTS.format(program=ahead.name) if ahead.weights else "",
        accessors="\n".join(accessors),
    )
    return text.splitlines()


def _update(variable: Variable) -> str:
    """Gives a variable its next value."""
    if variable.result is None:
        return ""
    target, source = (
        f"const_cast<void *>(args_[{variable.argument}])",
        f"results_[{variable.result}]",
    )
    return f"    if (status == 0) std::memcpy({target}, {source}, ResultSize({variable.result}));\n"


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_")) or name


def _accessors(leaf: Leaf, number: int, kind: str) -> str:
    """Typed access by number and by name, as tfcompile has it."""
    names = [] if kind == "var" else [f"{kind}{number}"]
    if (named := f"{kind}_{leaf.name}") not in (*names, f"{kind}_{kind}{number}"):
        names.append(named)
    type_, pointer = leaf.c_type, f"{'results_' if kind == 'result' else 'args_'}[{number}]"
    data = f"static_cast<const {type_} *>({pointer})"
    place = _index(leaf)
    dims = ", ".join(f"size_t dim{d}" for d in range(len(leaf.dimensions)))
    lines = [f"\n  /* {leaf.name}: {leaf.shape.to_string()} */"]
    for name in names:
        lines += [
            f"  {type_} *{name}_data() {{ return const_cast<{type_} *>({data}); }}",
            f"  const {type_} *{name}_data() const {{ return {data}; }}",
            f"  {type_} &{name}({dims}) {{ return {name}_data()[{place}]; }}",
            f"  const {type_} &{name}({dims}) const {{ return {name}_data()[{place}]; }}",
            f"  static constexpr size_t {name}_size() {{ return {leaf.size}; }}",
            f"  static constexpr size_t {name}_count() {{ return {leaf.count}; }}",
        ]
        if kind != "result":
            lines.append(f"  void set_{name}_data(const void *data) {{ {pointer} = data; }}")
    return "\n".join(lines)


def _index(leaf: Leaf) -> str:
    terms = [
        f"dim{d}" if stride == 1 else f"dim{d} * {stride}" for d, stride in enumerate(leaf.strides)
    ]
    return " + ".join(terms) or "0"
