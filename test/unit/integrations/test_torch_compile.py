"""`torch.compile(backend="mlirhlo")` against PyTorch itself, where it is installed."""

from __future__ import annotations

import copy
import sys
from typing import Any

import pytest
from support import ROOT

torch = pytest.importorskip("torch", reason="PyTorch is not installed", exc_type=ImportError)
sys.path.append(str(ROOT / "benchmarks"))
torch_models = pytest.importorskip("torch_models")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()
    torch._dynamo.config.allow_rnn = True
    torch.manual_seed(0)


def tensors(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple) else [result]


def compiled(function: Any, **options: Any) -> Any:
    return torch.compile(function, backend="mlirhlo", fullgraph=True, **options)


@pytest.mark.parametrize("case", torch_models.CASES, ids=lambda case: case.name)
def test_models_forward_and_trained(case: Any) -> None:
    """Results, gradients and buffers (running averages) are PyTorch's."""
    model, arguments = case.make(), case.arguments()
    ours = copy.deepcopy(model)
    run = compiled(ours)
    for is_training in (False, True):
        model.train(is_training)
        ours.train(is_training)
        expected, found = tensors(model(*arguments)), tensors(run(*arguments))
        for a, b in zip(expected, found, strict=True):
            torch.testing.assert_close(b, a, rtol=1e-4, atol=1e-4)
    for results in (expected, found):
        sum((x**2).mean() for x in results).backward()
    for (name, a), (_, b) in zip(model.named_parameters(), ours.named_parameters(), strict=True):
        if a.grad is not None:
            torch.testing.assert_close(b.grad, a.grad, rtol=1e-3, atol=1e-4, msg=name)
    for a, b in zip(model.buffers(), ours.buffers(), strict=True):
        torch.testing.assert_close(b, a, rtol=1e-4, atol=1e-5)


def test_training_goes_down_as_eager_does() -> None:
    model = torch_models.CASES[0].make()
    ours = copy.deepcopy(model)
    x, y = torch.randn(64, 64), torch.randint(0, 10, (64,))
    losses: list[list[float]] = []
    for module, run in ((model, model), (ours, compiled(ours))):
        optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2)
        own = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = torch.nn.functional.nll_loss(run(x), y)
            loss.backward()
            optimizer.step()
            own.append(float(loss))
        losses.append(own)
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
    assert losses[1][-1] < losses[1][0]


FUNCTIONS = {
    "mixed types": lambda x: (x.int() * 2.5 + x.bfloat16(), x.long() // 3, x > 1, (x > 0) & (x.int() != 2)),
    "scalars": lambda x: (2 - x, 3 / x, x**2, 2**x, x % 3, x.clamp(-1, 1), -x.abs()),
    "views": lambda x: (x.t()[1:, ::2], x.reshape(-1)[3:9].view(2, 3), x.unfold(1, 2, 2), x.flip(0).roll(1, 1)),
    "sorts": lambda x: (x.sort(dim=1, descending=True), x.topk(2), x.argmax(1), x.median(), x.cumsum(0)),
    "writes": lambda x: (x.clone().masked_fill_(x > 0, 9), x.clone().index_fill_(0, torch.tensor([1]), 7.0)),
    "statistics": lambda x: (x.var(1), x.std(), x.norm(), x.logsumexp(1), x.softmax(0), x.amax((0, 1))),
    "complex": lambda x: (torch.complex(x, x).abs(), torch.complex(x, -x).real),
    "half": lambda x: (x.half() @ x.half().t(), torch.nn.functional.gelu(x.bfloat16()), x.bfloat16().sum()),
    "shapes": lambda x: (torch.cat([x, x[:2]]), torch.stack([x, x], 1), x.repeat(2, 1), torch.tril(x), x.diagonal()),
    "empty": lambda x: (x[:0].sum(0), torch.cat([x[:0], x]), x[:, :0].prod(1)),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    function = FUNCTIONS[name]
    x = torch.randn(5, 4) * 2
    for a, b in zip(_flat(function(x)), _flat(compiled(function)(x)), strict=True):
        torch.testing.assert_close(b, a, rtol=2e-2 if a.dtype.itemsize == 2 else 1e-5, atol=1e-5)
        assert a.dtype == b.dtype


def _flat(result: Any) -> list[Any]:
    return [leaf for part in result for leaf in (part if isinstance(part, tuple) else (part,))]


def test_arguments_are_changed_in_place() -> None:
    def function(x: Any, y: Any) -> Any:
        x.mul_(2)
        y[0] += x.sum()
        return x + 1

    pairs = [(torch.ones(3), torch.zeros(2)) for _ in range(2)]
    results = [run(*pair) for run, pair in zip((function, compiled(function)), pairs, strict=True)]
    torch.testing.assert_close(results[1], results[0])
    torch.testing.assert_close(pairs[1], pairs[0])


def test_sizes_left_open() -> None:
    run = compiled(
        lambda x: (x.reshape(-1, 2).sum(0), torch.zeros(x.shape[0]) + x.shape[0]), dynamic=True
    )
    for count in (2, 5, 8):
        x = torch.randn(count, 4)
        total, sizes = run(x)
        torch.testing.assert_close(total, x.reshape(-1, 2).sum(0))
        assert sizes.tolist() == [count] * count


def test_random_numbers_are_those_of_the_seed() -> None:
    """New ones in each call; with a seed again, the same."""
    run = compiled(lambda x: torch.rand_like(x) + torch.randn(3))
    x = torch.zeros(2, 3)
    run(x)
    torch.manual_seed(1)
    first, second = run(x), run(x)
    torch.manual_seed(1)
    assert torch.equal(run(x), first)
    assert not torch.equal(first, second)
    dropped = compiled(lambda x: torch.nn.functional.dropout(x, 0.5))(torch.ones(1000))
    assert set(dropped.unique().tolist()) == {0.0, 2.0}


def test_what_has_no_rule_is_named_or_left_to_pytorch() -> None:
    def function(x: Any) -> Any:
        return torch.linalg.svd(x + 1)[1]

    x = torch.randn(3, 3)
    with pytest.raises(Exception, match=r"HLO0612.*no rule for .*svd"):
        compiled(function)(x)
    torch._dynamo.reset()
    with pytest.warns(UserWarning, match="svd"):
        found = compiled(function, options={"fallback": "eager"})(x)
    torch.testing.assert_close(found, function(x))
    torch._dynamo.reset()
    with pytest.raises(Exception, match=r"HLO0613.*mood"):
        compiled(function, options={"mood": 1})(x)
