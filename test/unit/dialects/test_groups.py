"""Replica groups: three forms, one meaning, held against XLA."""

from __future__ import annotations

import oracle
import pytest

from mlirhlo.dialects.hlo.attributes.groups import ReplicaGroups, read_replica_groups
from mlirhlo.dialects.hlo.syntax import SyntaxProblem, parse_all

TEXTS = """
{}
{{}}
{{0,1},{2,3}}
{{0,1},{2}}
{{ 0 , 1 } , {2,3}}
{{-1,0}}
[2,4]<=[8]
[2,4]<=[4,2]T(1,0)
[2,4]<=[2,4]T(0,1)
[2,4]<=[2,2,2]T(2,0,1)
[1,1]<=[1]
[0,2]<=[0]
mesh['x'=2,'y'=2] {'x'}
mesh['x'=2,'y'=2], {'x'}
mesh['x'=2,'y'=2] {'y','x'}
mesh['x'=2,'y'=2,'z'=2] {'z','x'}
mesh['x'=2,'y'=2], device_ids=(3,2,1,0) {'x'}
mesh['x'=2,'y'=2], device_ids=([2,2]T(1,0)) {'x'}
mesh['x'=4] {'x':(1)2}
mesh['x'=4] {'x':(2)2}
{0,1}
[4]<=[4]
[2,2,2]<=[8]
[2,4]<=[2,2,2]
[2,4]<=[8]T(0)
mesh['x'=1] {'x'}
mesh['x'=2] {}
maximal_mesh[device_id=0] {}
""".strip().splitlines()


@pytest.mark.oracle
def test_agrees_with_xla() -> None:
    pytest.importorskip("jaxlib")
    for text, theirs in zip(TEXTS, oracle.ask(TEXTS, oracle.groups), strict=True):
        try:
            groups = parse_all(text, read_replica_groups)
            ours = f"{groups}|{groups.expanded()}"
        except SyntaxProblem as problem:
            ours = f"ERROR {problem.message}"
        if theirs.startswith("ERROR"):
            assert ours.startswith("ERROR"), (text, ours, theirs)
        else:
            assert ours == theirs, text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # XLA aborts on these.
        ("mesh['x'=2,'y'=2] {'z'}", "axis 'z' is not an axis of the mesh"),
        ("[2,4]<=[9]", "2 groups of 4 devices cannot be made of 9 devices"),
        ("[1,999999999999]<=[999999999999]", "cannot be made"),
    ],
)
def test_own_messages(text: str, message: str) -> None:
    with pytest.raises(SyntaxProblem, match=message):
        parse_all(text, read_replica_groups)


def test_sizes() -> None:
    assert ReplicaGroups().groups() == ()
    assert ReplicaGroups().group_size is None
    groups = ReplicaGroups.of([[0, 1], [2, 3], [4, 5]])
    assert (groups.group_count, groups.group_size) == (3, 2)
    assert ReplicaGroups.of([[0, 1], [2]]).group_size is None
    iota = parse_all("[2,4]<=[4,2]T(1,0)", read_replica_groups)
    assert (iota.group_count, iota.group_size) == (2, 4)
    assert iota.groups() == ((0, 2, 4, 6), (1, 3, 5, 7))
