"""Models that PyTorch exported run here, without PyTorch, to what PyTorch computed."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import DATA

from mlirhlo.diagnostics import HloError
from mlirhlo.torch import load

MODELS = sorted(path for path in (DATA / "torch").iterdir() if path.is_dir())

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch_xla") is None, reason="torch_xla is not installed"
)


def called(folder: Path) -> tuple[list[Any], list[Any]]:
    """Leaves of the result, and what PyTorch says they are."""
    values = np.load(folder / "values.npz")
    bundle = load(folder)
    method = bundle.method()
    assert method.inputs is not None
    assert method.outputs is not None
    leaves = iter([values[f"input{i}"] for i in range(method.inputs.leaves)])
    args, kwargs = method.inputs.unflatten(leaves)
    result = bundle(*args, **kwargs)
    expected = [values[f"result{i}"] for i in range(method.outputs.leaves)]
    return list(method.outputs.flatten(result, "the result")), expected


@pytest.mark.parametrize("form", ["bytecode", "mlir"])
@pytest.mark.parametrize("folder", MODELS, ids=lambda p: p.name)
def test_model(folder: Path, form: str, tmp_path: Path) -> None:
    copy = tmp_path / folder.name
    shutil.copytree(folder, copy)
    if form == "mlir":
        (copy / "functions" / "forward.bytecode").unlink()
    results, expected = called(copy)
    assert len(results) == len(expected)
    for mine, theirs in zip(results, expected, strict=True):
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(mine, theirs, 2e-5, 1e-6)


def test_structures_weights_and_programs() -> None:
    bundle = load(DATA / "torch" / "attention")
    assert sorted(bundle.weights) == [
        "embedding.weight",
        "norm.bias",
        "norm.weight",
        "qkv.weight",
    ]
    method = bundle.method("Forward")
    assert [p.shape for p in method.parameters][1] == (1, 4)
    assert len(bundle.module.hlo.entry.parameters) == len(method.locations)
    batch = {"tokens": [[1, 0, 6, 2]], "mask": np.tri(4) > 0}
    result = bundle(batch, 0.35)
    assert sorted(result) == ["best", "y"]
    assert isinstance(result["best"], list)
    bundle.weights["norm.bias"] = bundle.weights["norm.bias"] + 1
    np.testing.assert_allclose(bundle(batch, 0.35)["y"], result["y"] + 1, 1e-5)


def test_sizes_left_open() -> None:
    bundle = load(DATA / "torch" / "any_batch")
    dynamic = [p.dynamic_dims for p in bundle.method().parameters]
    assert sorted(dynamic) == [(), (), (0,)]
    weight, bias = bundle.weights["layer.weight"], bundle.weights["layer.bias"]
    for size in (1, 2, 5):
        x = np.linspace(-1, 1, 3 * size, dtype=np.float32).reshape(size, 3)
        np.testing.assert_allclose(bundle(x), np.maximum(x @ weight.T + bias, 0), 1e-5, 1e-6)


def test_wrong_arguments_are_named() -> None:
    bundle = load(DATA / "torch" / "attention")
    wrong = [
        (({"tokens": [[1]]}, 0.35), r"\[0\]\[0\] is a mapping of \['tokens'\]"),
        (({"tokens": [[1]], "mask": 1},), r"\[0\] is a tuple of 1, the program takes tuple\(\{"),
        (([1], 0.35), r"\[0\]\[0\] is of type list|is a list of 1"),
    ]
    for args, message in wrong:
        with pytest.raises(HloError, match=message) as caught:
            bundle(*args)
        assert caught.value.code == "HLO0603"
    with pytest.raises(HloError, match="did you mean 'forward'"):
        bundle.method("foward")
    del bundle.weights["norm.bias"]
    with pytest.raises(HloError, match=r"parameter 'norm\.bias' is not in the bundle"):
        bundle({"tokens": [[1, 0, 6, 2]], "mask": np.tri(4) > 0}, 0.35)


def damaged(folder: Path, what: str) -> None:
    functions = folder / "functions"
    meta = functions / "forward.meta"
    match what:
        case "no functions":
            shutil.rmtree(functions)
        case "no meta":
            meta.unlink()
        case "no program":
            (functions / "forward.bytecode").unlink()
            (functions / "forward.mlir").unlink()
        case "no json":
            meta.write_text("{")
        case "no metadata":
            meta.write_text(json.dumps({"name": "forward"}))
        case "no tree":
            facts = json.loads(meta.read_text())
            meta.write_text(json.dumps({**facts, "input_pytree_spec": "[2, {}]"}))
        case "no array":
            (folder / "data" / "layer.bias").write_bytes(b"text")
        case "a pickle":
            np.save((folder / "data" / "layer.bias").open("wb"), np.array([{}], object))
        case _:
            raise AssertionError(what)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("no functions", "is no bundle"),
        ("no meta", "there is no '.meta' file"),
        ("no program", "there is no 'forward.bytecode' beside it"),
        ("no json", "cannot be read"),
        ("no metadata", "not the metadata of a method"),
        ("no tree", "protocol 2 are not known"),
        ("no array", "no numpy file"),
        ("a pickle", "no numpy file"),
    ],
)
def test_damaged_bundles(what: str, message: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(DATA / "torch" / "linear_relu", folder)
    damaged(folder, what)
    with pytest.raises(HloError, match=message) as caught:
        load(folder)
    assert caught.value.code == "HLO0608"


def test_without_torch() -> None:
    script = "import sys; sys.modules['torch'] = None; import mlirhlo.torch as t; t.export(None)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "error[HLO0600]: mlirhlo.torch.export needs torch, which is not" in done.stderr
    assert "help: pip install 'mlirhlo[torch]'" in done.stderr


@needs_torch
@pytest.mark.slow
def test_live() -> None:
    import torch  # pyright: ignore[reportMissingImports]

    from mlirhlo.torch import export

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(3, 2)

        def forward(self, x: Any) -> Any:
            return {"y": self.layer(x).sigmoid()}

    model = Model().eval()
    x = torch.randn(4, 3)
    bundle = export(model, (x,))
    expected = model(x)["y"].detach().numpy()
    np.testing.assert_allclose(bundle(x)["y"], expected, 1e-5)
    np.testing.assert_allclose(bundle(x.numpy())["y"], expected, 1e-5)
    again = export(torch.export.export(model, (x,)))
    np.testing.assert_allclose(again(x)["y"], expected, 1e-5)
    with pytest.raises(HloError, match="PyTorch cannot export") as caught:
        export(torch.nn.Linear(3, 2), (torch.randn(4, 7),))
    assert caught.value.code == "HLO0609"
