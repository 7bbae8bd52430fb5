"""Shardings: XLA's normal forms and texts, held against XLA."""

from __future__ import annotations

import random

import numpy as np
import oracle
import pytest

from mlirhlo.dialects.hlo.attributes.devices import Iota, TileAssignment
from mlirhlo.dialects.hlo.attributes.sharding import Sharding, ShardingKind, read_sharding
from mlirhlo.dialects.hlo.syntax import SyntaxProblem, parse_all


def printed(text: str, v2: bool = False) -> str:
    try:
        sharding = parse_all(text, read_sharding)
    except SyntaxProblem as problem:
        return f"ERROR {problem.message}"
    return (sharding.to_v2() if v2 else sharding).to_text(metadata=False)


def agree(texts: list[str]) -> None:
    pytest.importorskip("jaxlib")
    for v2, answer in ((False, oracle.sharding), (True, oracle.sharding_v2)):
        for text, theirs in zip(texts, oracle.ask(texts, answer), strict=True):
            ours = printed(text, v2)
            if theirs.startswith("ERROR"):
                assert ours.startswith("ERROR"), (text, ours, theirs)
            else:
                assert ours == theirs, text


WORDS = """
{replicated}
{manual}
{unknown}
{unreduced}
{device=3 maximal}
{replicated shard_as 3}
{devices=[2]<=[2] shard_like 4}
{replicated metadata={op_name="a"}}
{replicated metadata={{op_name="a"},{op_name="b"}}}
{devices=[2,2]0,1,2,3}
{devices=[2] 5,7}
{devices=[2]-1,0}
{}
{{replicated}}
{{replicated},{devices=[2]0,1}}
{{replicated},{replicated},{replicated},{replicated},{replicated},{manual},{maximal device=0}}
""".strip().splitlines()

TILES = """
{devices=[2,2]<=[4]}
{devices=[2,2]<=[2,2]T(1,0)}
{devices=[2,2]<=[2,2]T(0,1)}
{devices=[8]<=[2,2,2]T(2,0,1)}
{devices=[2,2,2]<=[2,2,2]T(2,0,1)}
{devices=[1,1]<=[1]}
{devices=[1,2]<=[1,2]T(1,0)}
{devices=[2,1,2]<=[2,1,2]T(2,1,0)}
{devices=[2,2]1,0,3,2 last_tile_dim_replicate}
{devices=[1,4]<=[4] last_tile_dim_replicate}
{devices=[4,1]0,1,3,2 last_tile_dim_replicate}
{devices=[2,4]<=[2,2,2]T(0,2,1) last_tile_dim_replicate}
{devices=[2,4]<=[2,2,2]T(1,2,0) last_tile_dim_replicate}
{devices=[2,8]<=[2,2,2,2]T(2,3,1,0) last_tile_dim_replicate}
{devices=[2,6]<=[3,2,2]T(2,1,0) last_tile_dim_replicate}
{devices=[3,4]<=[2,6]T(1,0) last_tile_dim_replicate}
{devices=[4,3]<=[2,6]T(1,0) last_tile_dim_replicate}
{devices=[6,2]<=[4,3]T(1,0) last_tile_dim_replicate}
{devices=[2,1,2]0,1,2,3 last_tile_dims={manual}}
{devices=[2,1,2]<=[4] last_tile_dims={manual,replicated}}
{devices=[1,2,2]<=[4] last_tile_dims={manual,manual}}
{devices=[2,2,2]<=[8] last_tile_dims={replicated,manual}}
{devices=[2,2,2]<=[8] last_tile_dims={unreduced,manual}}
{devices=[2,2,2,2]<=[16] last_tile_dims={replicated,manual,replicated}}
{devices=[2,2,2]0,1,2,3,4,5,6,7 last_tile_dims={replicated,manual}}
{devices=[2,2]<=[4] last_tile_dims={maximal}}
{devices=[2,2]<=[4] last_tile_dims={}}
{devices=[4,1]<=[4] last_tile_dims={manual}}
{devices=[2,2,1]<=[4] last_tile_dims={manual,replicated}}
{devices=[1,1,2]<=[2] last_tile_dims={manual, replicated}}
""".strip().splitlines()

NAMED = """
{mesh['x'=2,'y'=4], [{'x'}, {'y':(1)2, ?}], replicated={'y':(2)2}}
{mesh['x'=2], replicated}
{mesh['x'=2], manual}
{mesh['x'=2], unreduced}
{mesh['x'=2], []}
{mesh[], replicated}
{mesh['x'=2,'y'=2],device_ids=(3,2,1,0), [{'x'}]}
{mesh['x'=2,'y'=2], device_ids=([2,2]T(1,0)), [{'x'}]}
{mesh['x'=2,'y'=2], device_ids=([4]), [{'x'}]}
{maximal_mesh[device_id=3]}
{mesh["x"=2,'y'=2], [{'x',"y"},{},{?}]}
{mesh['x'=2,'y'=2,'z'=2], [{'x'}], manual={'z'}, replicated={'y'}}
{mesh['x'=2,'y'=2,'z'=2], [{'x'}], manual={'z'}, unreduced={'y'}}
{mesh['x'=2,'y'=2], [], manual={'x','y'}}
{mesh['x'=2,'y'=2], [{}], manual={'x','y'}}
{mesh['x'=2,'y'=2], [], manual={'x'}}
{mesh['x'=2,'y'=2], [], replicated={'x'}}
{mesh['x'=4], [{'x':(2)2}]}
{mesh['x'=8], [{'x':(1)2}, {'x':(4)2}], replicated={'x':(2)2}}
{mesh['a b"c'=2], [{'a b"c'}]}
{{mesh['x'=2], [{'x'}]},{replicated}}
{mesh['x'=2,'y'=2], [{'x'}], metadata={op_name="a"}}
{mesh['x'=2,'y'=2] [{'x'}, {}]}
{mesh['x'=2,'y'=2] replicated}
{mesh['x'=2,'y'=2] manual}
{mesh['x'=2,'y'=2], device_ids=(3,2,1,0) [{'x'}], replicated={'y'}}
""".strip().splitlines()

INVALID = """
{}}
{foo}
{replicated
{replicated device=1}
{maximal}
{device=1}
{devices=[1]0}
{devices=[2,2]}
{devices=[]}
{devices=[2,2]<=[2,2]}
{devices=[2,2]<=[2,2]T(0)}
{devices=[2,2]<=[4]T(0)}
{last_tile_dim_replicate}
{shard_as 1}
{maximal device=0 devices=[1]0}
{{{replicated}},{manual}}
{mesh['x'=2]}
{mesh['x'=2], unknown}
{mesh['x'=2,], []}
{mesh['x'=2,'y'=2], replicated, manual={'x'}}
{mesh['x'=2], [{'x'}], shard_as 3}
{maximal_mesh[device_id=0], replicated}
""".strip().splitlines()


@pytest.mark.oracle
@pytest.mark.parametrize("texts", [WORDS, TILES, NAMED, INVALID], ids=["w", "v2", "v3", "bad"])
def test_agrees_with_xla(texts: list[str]) -> None:
    agree(texts)


@pytest.mark.oracle
def test_random_tiles_agree_with_xla() -> None:
    random_ = random.Random(11)
    kinds = ["", " last_tile_dim_replicate"]
    words = ["manual", "replicated", "unreduced"]
    texts: list[str] = []
    for _ in range(400):
        reshape = [random_.choice([1, 2, 2, 3, 4]) for _ in range(random_.randint(2, 4))]
        permutation = random_.sample(range(len(reshape)), len(reshape))
        size = int(np.prod(reshape))
        if size < 2:
            continue
        grid, left = [], size
        while left > 1:
            part = random_.choice([d for d in range(1, left + 1) if left % d == 0])
            grid.append(part)
            left //= part
        tail = random_.choice([*kinds, ""])
        count = random_.randint(1, len(grid))
        if not tail:
            tail = f" last_tile_dims={{{','.join(random_.choices(words, k=count))}}}"
        order = f"<={reshape}T({','.join(map(str, permutation))})"
        if random_.random() < 0.2:
            order = ",".join(map(str, random_.sample(range(size), size)))
        texts.append(f"{{devices={grid}{order}{tail}}}".replace(", ", ","))
    agree(texts)


@pytest.mark.oracle
def test_random_meshes_agree_with_xla() -> None:
    random_ = random.Random(12)
    texts: list[str] = []
    for _ in range(300):
        sizes = {name: random_.choice([2, 2, 4, 3]) for name in "xyz"[: random_.randint(1, 3)]}
        axes = [f"'{n}'" for n in sizes]
        if random_.random() < 0.5:
            big = [n for n, s in sizes.items() if s == 4]
            axes = [a for a in axes if a.strip("'") not in big]
            axes += [f"'{n}':({p})2" for n in big for p in random_.choice([(1,), (2,)])]
        random_.shuffle(axes)
        cut = sorted(random_.choices(range(len(axes) + 1), k=2))
        dims = ", ".join(
            f"{{{','.join(part)}}}" for part in (axes[: cut[0]], axes[cut[0] : cut[1]])
        )
        rest = sorted(axes[cut[1] :])
        lists = f", {random_.choice(['manual', 'unreduced', 'replicated'])}={{{','.join(rest)}}}"
        devices = ""
        if random_.random() < 0.4 and len(sizes) > 1:
            order = random_.sample(range(len(sizes)), len(sizes))
            if order != sorted(order):
                devices = f", device_ids=({[*sizes.values()]}T({','.join(map(str, order))}))"
        mesh = ",".join(f"'{n}'={s}" for n, s in sizes.items())
        text = f"{{mesh[{mesh}]{devices}, [{dims}]{lists if rest else ''}}}"
        texts.append(text.replace(", 2", ",2").replace(", 3", ",3").replace(", 4", ",4"))
    agree(texts)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # XLA aborts, or quietly makes up or forgets devices.
        ("{mesh['x'=2], [{'z'}]}", "axis 'z' is not an axis of the mesh"),
        ("{mesh['x'=2,'x'=2], []}", "a mesh axis is named twice"),
        ("{mesh['x'=4], [{'x':(1)3}]}", "does not divide axis 'x'"),
        ("{mesh['x'=2], [{'x'},{'x'}]}", "used twice"),
        ("{mesh['x'=0], []}", "must be positive"),
        ("{devices=[2,2]0,1,2}", "a grid of 4 tiles cannot take 3 devices"),
        ("{devices=[2,2]<=[8]}", "a grid of 4 tiles cannot take 8 devices"),
        ("{devices=[2,2]<=[2,2]T(0,0)}", "is not a permutation"),
        ("{devices=[99999999,99999999]<=[9999999800000001]}", "too large"),
        ("{replicated manual}", "cannot be both"),
    ],
)
def test_own_messages(text: str, message: str) -> None:
    assert message in printed(text)


def test_bare_axis_names_of_early_2026() -> None:
    assert printed("{mesh[x=2], [{x}]}") == "{mesh['x'=2], [{'x'}]}"


@pytest.mark.parametrize(
    "text",
    [
        '{replicated metadata={op_name="a" source_line=3}}',
        '{replicated metadata={{op_name="a"}, {op_name="b"}}}',
        '{devices=[2]0,1 shard_as 4 metadata={op_name="a"}}',
        "{mesh['x'=2,'y'=2], [{'x'}], metadata={{op_name=\"a\"}}}",
        '{maximal_mesh[device_id=3], metadata={{op_name="a"}}}',
        "{mesh['x'=2], manual, metadata={{op_name=\"a\"}}}",
        '{{replicated metadata={op_name="a"}}, {manual}}',
    ],
)
def test_metadata_round_trip(text: str) -> None:
    sharding = parse_all(text, read_sharding)
    assert str(sharding) == text
    assert parse_all(str(sharding), read_sharding) == sharding
    assert "op_name" not in sharding.to_text(metadata=False)


def test_tiles_of_devices() -> None:
    sharding = parse_all("{devices=[2,2,2]<=[8] last_tile_dim_replicate}", read_sharding)
    assert sharding.data_tiles == (2, 2)
    assert sharding.tile_sizes((5, 8)) == (3, 4)
    assert sharding.tile_of_device(5) == (1, 0)
    assert sharding.tile_bounds((5, 8), 5) == ((3, 5), (0, 4))
    assert sharding.tile_of_device(9) is None
    named = parse_all("{mesh['x'=2,'y'=2], [{'y'}, {'x'}]}", read_sharding)
    assert named.tile_bounds((4, 4), 1) == ((2, 4), (0, 2))
    assert Sharding.maximal(3).tile_bounds((4,), 3) == ((0, 4),)
    assert Sharding.maximal(3).tile_bounds((4,), 2) is None
    whole = Sharding(ShardingKind.REPLICATED)
    assert whole.tile_bounds((4,), 7) == ((0, 4),)
    assert str(whole.expanded(2)) == "{{replicated}, {replicated}}"


def test_orders_agree_with_numpy() -> None:
    random_ = random.Random(5)
    for _ in range(200):
        reshape = [random_.choice([1, 2, 3, 4]) for _ in range(random_.randint(1, 4))]
        permutation = random_.sample(range(len(reshape)), len(reshape))
        want = np.arange(np.prod(reshape)).reshape(reshape).transpose(permutation)
        tiles = TileAssignment(want.shape, Iota.of(reshape, permutation))
        assert tiles.ids() == tuple(want.reshape(-1))
        assert np.array_equal(tiles.array, want)
        order = random_.sample(range(want.ndim), want.ndim)
        assert tiles.transpose(order).ids() == tuple(want.transpose(order).reshape(-1))
        flat = TileAssignment(want.shape, tiles.ids())
        assert flat.transpose(order).ids() == tiles.transpose(order).ids()
