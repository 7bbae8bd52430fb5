"""TensorFlow graphs ahead of time: what a config gets wrong, and programs against TensorFlow where it is installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlirhlo
from mlirhlo.aot import compile_ahead, emitted, write_files
from mlirhlo.aot.config import parse_config
from mlirhlo.aot.graphs import graph_module
from mlirhlo.cli import hlo_aot
from mlirhlo.diagnostics import HloError
from mlirhlo.integrations.tensorflow.clustering.graph import is_graph, read_graph

DATA = Path(__file__).parents[2] / "data"


def placeholder(name: str, *sizes: int, type: str = "DT_FLOAT") -> str:
    dims = " ".join(f"dim {{ size: {size} }}" for size in sizes)
    return (
        f'node {{ name: "{name}" op: "Placeholder" attr {{ key: "dtype" value {{ type: {type} }} }} '
        f'attr {{ key: "shape" value {{ shape {{ {dims} }} }} }} }}\n'
    )


def node(text: str, *types: str) -> str:
    name, op, *inputs = text.split()
    edges = " ".join(f'input: "{one}"' for one in inputs)
    pairs = [one.split("=") for one in types or ("T=DT_FLOAT",)]
    attributes = " ".join(f'attr {{ key: "{k}" value {{ type: {v} }} }}' for k, v in pairs)
    return f'node {{ name: "{name}" op: "{op}" {edges} {attributes} }}\n'


GRAPH = (
    placeholder("x", 2, 3)
    + placeholder("w", -1, 4)
    + placeholder("n", 2, type="DT_INT32")
    + node("d MatMul x w")
    + node("t Tanh d")
    + node("r Reshape t n", "T=DT_FLOAT", "Tshape=DT_INT32")
    + node("s AsString t")
    + node("p PrintV2 s ^t")
)


def feed(name: str, *sizes: int, more: str = "") -> str:
    dims = " ".join(f"dim {{ size: {size} }}" for size in sizes)
    shape = f"shape {{ {dims} }}" if sizes else ""
    return f'feed {{ id {{ node_name: "{name}" }} {shape} {more} }}\n'


def fetch(name: str, output: int = 0, more: str = "") -> str:
    return f'fetch {{ id {{ node_name: "{name}" output_index: {output} }} {more} }}\n'


BOTH = feed("x") + feed("w", 3, 4)


def variable(name: str, *sizes: int, more: str = "") -> str:
    dims = " ".join(f"dim {{ size: {size} }}" for size in sizes)
    shape = f"shape {{ {dims} }}" if sizes else ""
    return f'variable {{ node_name: "{name}" {shape} {more} }}\n'


VARIABLES = (
    placeholder("x", 3)
    + 'node { name: "v" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } } '
    'attr { key: "shape" value { shape { dim { size: 3 } } } } }\n'
    + node("u AssignAddVariableOp v x", "dtype=DT_FLOAT")
    + node("r ReadVariableOp v ^u", "dtype=DT_FLOAT")
    + node("b ReadVariableOp v", "dtype=DT_FLOAT")
    + node("y AddV2 r x")
    + node("z AddV2 b x")
)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (fetch("y"), "the config has no variable 'v'"),
        (variable("w") + fetch("y"), "variable 'w': the graph has no such node"),
        (variable("x") + fetch("y"), "variable 'x': the node is Placeholder"),
        (variable("v", 2) + fetch("y"), r"variable 'v': the config says \[2\], the graph \[3\]"),
        (variable("v", more="type: DT_INT32") + fetch("y"), "the config says DT_INT32, the graph"),
        (variable("v") + variable("v") + fetch("y"), "variable 'v' is named twice"),
    ],
)
def test_variables_that_do_not_fit(config: str, message: str) -> None:
    with pytest.raises(HloError, match=f"HLO0842.*{message}"):
        graph_module(read_graph(VARIABLES), parse_config(feed("x") + config))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("variable { name: 'v' }", 'variable: no node_name: "…"'),
        ("variable { node_name: 'v' readonly: 1 }", "expected true or false"),
        ("variable { id { node_name: 'v' } }", "unknown field 'id' of a variable"),
        ("feed { node_name: 'v' }", "unknown field 'node_name' of a feed"),
        ("conversion_options { custom_fake_quant_op_calls: true }", "have no code"),
        ("conversion_options { fast: true }", "unknown field 'fast' of conversion_options"),
    ],
)
def test_configs_that_do_not_read(config: str, message: str) -> None:
    with pytest.raises(HloError, match=f"HLO0842.*{message}"):
        parse_config(config)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("g++"), reason="no C++ compiler")
def test_runs_give_variables_their_next_value(tmp_path: Path) -> None:
    text = """HloModule count
    ENTRY e {
      x = f32[2] parameter(0)
      v = f32[2] parameter(1)
      n = f32[2] add(x, v)
      ROOT r = (f32[2], f32[2]) tuple(v, n)
    }"""
    entry = parse_config(
        feed("0", more='name: "x"')
        + fetch("0", more='name: "y"')
        + 'variable { node_name: "1" name: "v" }'
    )
    ahead = compile_ahead(mlirhlo.parse(text).op, "count", config=entry)
    assert [leaf.name for leaf in ahead.signature.results] == ["y", "v_updated"]
    write_files(tmp_path, emitted(ahead, ["obj"]))
    (tmp_path / "main.cc").write_text("""
#include "count.h"
#include <cstdio>
int main() {
  mlirhlo_aot::Count count;
  count.arg_x(0) = 2;
  count.arg_x(1) = 3;
  count.var_v(0) = count.var_v(1) = 1;
  for (int i = 0; i < 3; ++i) count.Run();
  std::printf("%d %.0f %.0f", int(count.kNumVariables), count.result_y(0), count.var_v_data()[1]);
}
""")
    command = ["g++", "-Wall", "-Wextra", "-Werror", "main.cc", "count.o", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True)
    assert done.stdout == "1 5 10"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (feed("x") + fetch("t"), "the config has no feed for 'w'"),
        (fetch("t"), "the config has no feed for 'x', 'w'"),
        (BOTH, "the config has no fetch"),
        (feed("x") + feed("w") + fetch("t"), "feed 'w': its shape is not known"),
        (feed("y") + fetch("t"), "feed 'y': the graph has no such node"),
        (BOTH + fetch("u"), "fetch 'u': the graph has no such node"),
        (BOTH + fetch("t", 1), "fetch 't:1': the node has 1 outputs"),
        (BOTH + fetch("t") + fetch("t"), "fetch 't' is named twice"),
        (BOTH + feed("x", 2, 3) + fetch("t"), "feed 'x' is named twice"),
        (feed("x", 2, 4) + fetch("x"), r"feed 'x': the config says \[2, 4\], the graph \[2, 3\]"),
        (feed("x", more="type: DT_INT32") + fetch("x"), "the config says int32, the graph float"),
        (feed("x", more="type: DT_FLOATS") + fetch("x"), "feed 'x': unknown type DT_FLOATS"),
        (BOTH + feed("n") + fetch("r"), "feed 'n': its value is needed while the graph"),
    ],
)
def test_configs_that_do_not_fit(config: str, message: str) -> None:
    with pytest.raises(HloError, match=f"HLO0842.*{message}"):
        graph_module(read_graph(GRAPH), parse_config(config))


def test_graphs_are_told_by_content(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert is_graph(GRAPH.encode())
    assert is_graph(read_graph(GRAPH).definition.SerializeToString())
    for name in ("stablehlo", "dumps/cpu"):
        files = [p for p in (DATA / name).glob("*") if p.is_file()][::9]
        assert not [p for p in files if is_graph(p.read_bytes())]
    (tmp_path / "graph.pbtxt").write_text(GRAPH)
    out = tmp_path / "out"
    assert hlo_aot.main([str(tmp_path / "graph.pbtxt"), "-o", str(out)]) != 0
    assert "HLO0502" in capsys.readouterr().err
    (tmp_path / "config").write_text(feed("x") + fetch("t"))
    command = [str(tmp_path / "graph.pbtxt"), f"--config={tmp_path / 'config'}", "-o", str(out)]
    assert hlo_aot.main(command) != 0
    assert "HLO0842" in capsys.readouterr().err
    assert not out.exists()


def executed(folder: Path, graph: str | bytes, config: str, *arrays: Any) -> list[Any]:
    """The results of a graph as a library that ctypes calls."""
    import ctypes

    module, numbered = graph_module(read_graph(graph), parse_config(config))
    ahead = compile_ahead(module, "graph", config=numbered)
    write_files(folder, emitted(ahead, ["shared"]))
    library = ctypes.CDLL(str(folder / "libgraph.so"))
    inputs = [np.ascontiguousarray(array) for array in arrays]
    kinds = [leaf.shape.element_type.dtype for leaf in ahead.signature.results]
    outputs = [
        np.empty(leaf.dimensions, kind)
        for leaf, kind in zip(ahead.signature.results, kinds, strict=True)
    ]
    arena = np.empty(ahead.arena_bytes + 64, np.uint8)
    start = arena.ctypes.data + -arena.ctypes.data % 64
    pointers = [
        (ctypes.c_void_p * (len(some) + 1))(*[array.ctypes.data for array in some])
        for some in (inputs, outputs)
    ]
    assert library.graph_run(*pointers, ctypes.c_void_p(start), None) == 0
    return outputs


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
class TestWithTensorFlow:
    """Programs against TensorFlow's results."""

    tf: Any

    @pytest.fixture(autouse=True)
    def _tensorflow(self) -> None:
        reason = "needs TensorFlow (pip install tensorflow-cpu)"
        type(self).tf = pytest.importorskip("tensorflow", reason=reason)

    def same(self, folder: Path, function: Any, *arrays: Any) -> None:
        tf = self.tf
        specs = [tf.TensorSpec(a.shape, a.dtype, name=f"in{n}") for n, a in enumerate(arrays)]
        concrete = tf.function(function).get_concrete_function(*specs)
        config = "".join(feed(t.op.name) for t in concrete.inputs)
        config += "".join(
            fetch(t.op.name, t.value_index, f'name: "out{n}"')
            for n, t in enumerate(concrete.outputs)
        )
        graph = concrete.graph.as_graph_def().SerializeToString()
        assert is_graph(graph)
        expected = tf.nest.flatten(function(*arrays))
        for ours, theirs in zip(executed(folder, graph, config, *arrays), expected, strict=True):
            np.testing.assert_allclose(ours, theirs.numpy(), rtol=2e-6, atol=2e-6)

    def test_a_network(self, tmp_path: Path) -> None:
        tf, random = self.tf, np.random.default_rng(0)
        kernel, weights = (random.random(s, np.float32) for s in ((3, 3, 2, 4), (64, 5)))

        def network(x: Any) -> Any:
            y = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME"))
            y = tf.nn.max_pool2d(y, 2, 2, "VALID")
            return tf.nn.softmax(tf.reshape(y, [x.shape[0], -1]) @ weights), y

        self.same(tmp_path, network, random.random((2, 8, 8, 2), np.float32))

    def test_functions_loops_and_types(self, tmp_path: Path) -> None:
        tf = self.tf

        @tf.function
        def inner(x: Any) -> Any:
            return tf.sin(x) * 2.0

        def program(x: Any, n: Any) -> Any:
            body = lambda i, y: (i + 1, inner(y) + 1.0)  # noqa: E731
            count, y = tf.while_loop(lambda i, _: i < 3, body, (0, x))
            return y, n * count, tf.cond(n[0] > 1, lambda: y, lambda: -y)

        self.same(tmp_path, program, np.ones((2, 3), np.float32), np.array([2, -3], np.int32))

    def test_only_what_is_fetched_is_compiled(self, tmp_path: Path) -> None:
        x, w = np.ones((2, 3), np.float32), np.full((3, 4), 0.5, np.float32)
        (t,) = executed(tmp_path, GRAPH, BOTH + fetch("t"), x, w)
        np.testing.assert_allclose(t, np.tanh(x @ w), rtol=1e-6)

    def test_a_node_inside_is_fed_and_feeds_are_fetched(self, tmp_path: Path) -> None:
        d, x = np.ones((2, 4), np.float32), np.ones((2, 3), np.float32)
        config = feed("d", 2, 4) + feed("x") + fetch("x") + fetch("t")
        fed, t = executed(tmp_path, GRAPH, config, d, x)
        np.testing.assert_array_equal(fed, x)
        np.testing.assert_allclose(t, np.tanh(d), rtol=1e-6)

    @pytest.mark.parametrize("fetched", ["s", "p"])
    def test_what_cannot_be_compiled(self, fetched: str) -> None:
        with pytest.raises(HloError, match="HLO0607"):
            graph_module(read_graph(GRAPH), parse_config(BOTH + fetch(fetched)))

    @pytest.mark.parametrize(
        ("fetched", "readonly", "expected"),
        [("y", "", [12, 11]), ("z", "readonly: true", [11])],
    )
    def test_variables(
        self, tmp_path: Path, fetched: str, readonly: str, expected: list[int]
    ) -> None:
        config = feed("x") + fetch(fetched) + variable("v", more=readonly)
        x, v = np.ones(3, np.float32), np.full(3, 10, np.float32)
        got = executed(tmp_path, VARIABLES, config, x, v)
        assert [array.tolist() for array in got] == [[value] * 3 for value in expected]

    @pytest.mark.parametrize(
        ("fetched", "readonly", "message"),
        [("y", "readonly: true", "the graph assigns it"), ("z", "", "nothing that is fetched")],
    )
    def test_variables_that_are_misstated(self, fetched: str, readonly: str, message: str) -> None:
        config = feed("x") + fetch(fetched) + variable("v", more=readonly)
        with pytest.raises(HloError, match=f"HLO0842.*variable 'v': {message}"):
            graph_module(read_graph(VARIABLES), parse_config(config))

    def test_from_the_command_line(self, tmp_path: Path) -> None:
        (tmp_path / "g.pbtxt").write_text(GRAPH)
        (tmp_path / "config").write_text(BOTH + fetch("t", more='name: "y"'))
        command = [f"--config={tmp_path / 'config'}", "--emit=static", f"--output={tmp_path}"]
        assert hlo_aot.main([*command, str(tmp_path / "g.pbtxt")]) == 0
        assert "arg_w" in (tmp_path / "g.h").read_text()
        assert "result_y" in (tmp_path / "g.h").read_text()
