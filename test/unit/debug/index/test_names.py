"""Names of dump files: what each part means, whoever wrote them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import DATA

from mlirhlo.debug.dump.names import boundary, module_identifier, sanitized, stem
from mlirhlo.debug.index import FileName, parse_name

LISTINGS = sorted((DATA / "dumps/listings").glob("*.names.txt"))


def fields(name: FileName, *keys: str) -> tuple[object, ...]:
    return tuple(getattr(name, key) for key in keys)


BOUNDARIES = {
    "module_0000.jit_mlp.0007.simplification.after_algsimp.before_simplify-sorts.txt": (
        0, "jit_mlp", 7, "simplification", "algsimp", "simplify-sorts",
    ),
    "1795191395212060.module_0000.jit_mlp.0000.HLO_passes.after_reshape-decomposer.before_fusion.txt": (
        0, "jit_mlp", 0, "HLO_passes", "reshape-decomposer", "fusion",
    ),
    "module_0000.jit_mlp.cl_1003875606.0033.Main_fusion.after_pipeline-start.before_tpu_fusion.txt": (
        0, "jit_mlp", 33, "Main_fusion", "pipeline-start", "tpu_fusion",
    ),
    "module_0001.0004.IPU.after_allocation-finder.before_forward-allocation.dot": (
        1, "", 4, "IPU", "allocation-finder", "forward-allocation",
    ),
    "module_0065.pmap__unnamed_wrapped_function_.186875.0003.a.b-1.after_x.before_y.hlo.pb.gz": (
        65, "pmap__unnamed_wrapped_function_.186875", 3, "a.b-1", "x", "y",
    ),
    "module_0001.0004.simplification.after_dce": (1, "", 4, "simplification", "dce", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", BOUNDARIES)
def test_between_passes(name: str) -> None:
    found = parse_name(name)
    assert found.kind == "boundary"
    keys = ("module_id", "module_name", "step", "pipeline", "after", "before")
    assert fields(found, *keys) == BOUNDARIES[name]


OTHERS = {
    "module_0000.jit_mlp.before_optimizations.txt": ("before", "jit_mlp", ""),
    "module_0001.jit_mlp.sm_9.0a_gpu_after_optimizations.txt": ("after", "jit_mlp", "GPU"),
    "module_0001.jit_mlp.sm_9.0a_gpu_after_optimizations-live-range.txt": ("report", "jit_mlp", "GPU"),
    "module_0000.jit_mlp.cpu_after_optimizations-buffer-assignment-values.txt": ("report", "jit_mlp", "CPU"),
    "1624325116260738.module_0065.pmap__unnamed_wrapped_function_.186875.before_optimizations.txt": (
        "before", "pmap__unnamed_wrapped_function_.186875", "",
    ),
    "module_0001.after_optimizations.txt": ("after", "", ""),
    "module_0000.jit_mlp.cl_1003875606.after_codegen.txt": ("stage", "jit_mlp", "TPU"),
    "module_0000.jit_mlp.0021.copy-insertion.after_adding_copies_to_resolve_interference.txt": (
        "during", "jit_mlp", "",
    ),
    "module_0000.f.cl_1.0003.tpu-tiling-rewriter.before_tiling_rewriter.txt": ("during", "f", "TPU"),
    "main.4.module_0000.jit_mlp._fusion.html": ("graph", "jit_mlp", ""),
    "module_0001.metadata.textproto": ("passes", "", ""),
    "module_0000.jit_mlp.broadcast_multiply_fusion_kernel_module.ir-no-opt.ll": ("ir", "jit_mlp", ""),
    "mark_for_compilation.pbtxt": ("tensorflow", "", ""),
    "before_mark_for_compilation_12.pbtxt": ("tensorflow", "", ""),
    "mark_for_compilation_annotated_3.pbtxt": ("tensorflow", "", ""),
    "partially_decluster.pbtxt": ("tensorflow", "", ""),
    "before_partially_decluster_pass_2.pbtxt": ("tensorflow", "", ""),
    "encapsulate_subgraphs_after_1.pbtxt": ("tensorflow", "", ""),
    "encapsulate_subgraphs.pbtxt": ("tensorflow", "", ""),
    "increase_dynamism_for_auto_jit_pass.pbtxt": ("tensorflow", "", ""),
    "__inference_f_1.0007.graph_opt_pass.after_opt_group_post_rewrite_for_exec_phase_20_PartiallyDeclusterPass.pbtxt": (
        "tensorflow", "", "",
    ),
    "f.3.before_opt_group_pre_placement.pbtxt": ("tensorflow", "", ""),
    "f.0001.main.initial.pbtxt": ("tensorflow", "", ""),
    "model.pbtxt": ("other", "", ""),
    "mark_for_compilation.txt": ("other", "", ""),
    "module_0001.jit_mlp.0.ir-no-opt.ll": ("ir", "jit_mlp", "GPU"),
    "module_0001.ir-no-opt.ll": ("ir", "", ""),
    "module_0001.jit_mlp.3.ptx": ("object", "jit_mlp", "GPU"),
    "module_0001.ptx": ("object", "", "GPU"),
    "module_0001.jit_step.__compute_module_wrapped_copy.ir-no-opt.ll": ("ir", "jit_step", "CPU"),
    "module_0001.jit_step.__compute_module_wrapped_copy.1.ir-with-opt.ll": ("ir", "jit_step", "CPU"),
    "module_0000.jit_mlp.obj-file.reduce_divide_fusion_kernel_module.o": ("object", "jit_mlp", "CPU"),
    "module_0000.jit_mlp.snapshot.-305813152.pb": ("snapshot", "jit_mlp", ""),
    "module_0000.jit_mlp.execution_0000.hlo_unoptimized_snapshot.pb": ("snapshot", "jit_mlp", ""),
    "module_jit_f.execution_0003.hlo_snapshot.pb": ("snapshot", "jit_f", ""),
    "module_0000.jit_mlp.debug_options": ("options", "jit_mlp", ""),
    "module_0000.jit_mlp": ("inputs", "jit_mlp", ""),
    "module_0001.jit_mlp.autotuner_0.gemm_fusion_dot_general.1.before.txt": ("autotuning", "jit_mlp", "GPU"),
    "1795192028328795832-0015-mosaic-dump-anonymous-post-apply-vector-layout.txt": (
        "kernel", "anonymous", "TPU",
    ),
    "0015-mosaic-dump-kernel-post-infer-vector-layout.txt": ("kernel", "kernel", "TPU"),
    "1795191972464348011-fusion.1-04-original.txt": ("kernel", "", "TPU"),
    "jit_mlp.triton_softmax_2.triton-to-llvm.txt": ("ir", "jit_mlp", "GPU"),
    "jax_ir0000_jit_mlp_compile.mlir": ("stablehlo", "jit_mlp", ""),
    "jax_000000_mlp.jaxpr.txt": ("jaxpr", "", ""),
    "README.md": ("other", "", ""),
    "": ("other", "", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_fixed_names(name: str) -> None:
    assert fields(parse_name(name), "kind", "module_name", "platform") == OTHERS[name]


def test_a_known_name_decides_where_it_ends() -> None:
    name = "module_0000.a.b.ir-no-opt.ll"
    assert fields(parse_name(name), "module_name", "suffix") == ("a", "b.ir-no-opt")
    assert fields(parse_name(name, {0: ["a.b"]}), "module_name", "suffix") == ("a.b", "ir-no-opt")


def test_a_timestamp_is_a_time() -> None:
    found = parse_name("1624325116260738.module_0065.f.before_optimizations.txt")
    assert found.timestamp_us == 1624325116260738
    assert "2021-06-22 01:25:16 UTC" in found.parts[0][1]


@pytest.mark.parametrize("listing", LISTINGS, ids=lambda path: path.name.removesuffix(".names.txt"))
def test_every_name_that_the_compilers_write_is_known(listing: str) -> None:
    names = [
        line.split()[-1].rsplit("/", 1)[-1]
        for line in listing.read_text().split("\n")
        if line.strip()
    ]
    unknown = [name for name in names if parse_name(name).kind == "other"]
    assert not unknown
    assert all(parse_name(name).meaning for name in names)
    assert len(names) > 10


@pytest.mark.parametrize("name", [*BOUNDARIES, *OTHERS])
def test_parts_stand_in_the_name(name: str) -> None:
    found = parse_name(name)
    place = 0
    for part, meaning in found.parts:
        assert meaning
        place = name.find(part, place)
        assert place >= 0, part


IDENTIFIER = st.from_regex(r"[a-z_][a-z0-9_-]{0,12}", fullmatch=True)


@given(st.integers(0, 10**6), IDENTIFIER, st.integers(0, 9999), IDENTIFIER, IDENTIFIER, IDENTIFIER)
def test_our_own_names_are_read_back(
    number: int, module: str, step: int, pipeline: str, after: str, before: str
) -> None:
    name = (
        sanitized(stem(number, module_identifier(module), boundary(step, pipeline, after, before)))
        + ".txt"
    )
    found = parse_name(name)
    keys = ("module_id", "module_name", "step", "pipeline", "after", "before")
    assert fields(found, *keys) == (number, module, step, pipeline, after, before)


@given(st.text())
def test_any_text_is_a_name(name: str) -> None:
    assert parse_name(name).text == name
    assert parse_name(f"module_0000.{name}").kind


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("partially_decluster", "after partially_decluster, in which nodes leave their clusters"),
        ("before_cluster_scoping_pass_2", "before cluster_scoping, in which pipeline stages"),
        ("f.7.after_opt_group_post_partitioning", "after the optimizations post_partitioning"),
        (
            "f.7.after_opt_group_a_b_phase_3_BuildXlaOpsPass",
            "after BuildXlaOpsPass, in which clusters are made nodes",
        ),
        ("f.7.after_opt_group_a_b_phase_3_Mine", "after Mine (TF_DUMP"),
    ],
)
def test_graphs_of_tensorflow_say_what_the_pass_does(name: str, meaning: str) -> None:
    assert f"the TensorFlow graph {meaning}" in parse_name(f"{name}.pbtxt").meaning
