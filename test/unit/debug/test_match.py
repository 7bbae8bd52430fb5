"""Matching of versions: by structure, context and names; in linear time; through fusions and calls."""

import random

import pytest
from support import DATA, calls_of

from mlirhlo.debug.match import Interner, Kind, Listing, Match, Structure, listing_of_text, match

MLP = (DATA / "dumps/cpu/module_0000.jit_mlp.cpu_after_optimizations.txt").read_text()


def compared(before: str, after: str) -> tuple[Listing, Listing, Match]:
    old, new = listing_of_text(before), listing_of_text(after)
    return old, new, match(old, new)


def kinds(before: str, after: str) -> dict[str, str]:
    """What happened, by name of today, or of before for what is removed."""
    old, new, found = compared(before, after)
    return {
        (
            new.rows[row.after] if row.after is not None else old.rows[row.before or 0]
        ).name: row.kind.value
        for row in found.rows
    }


def entry(*lines: str, others: str = "") -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return f"HloModule m\n\n{others}ENTRY %e (x: f32[4]) -> f32[4] {{\n  %x = f32[4]{{0}} parameter(0)\n{body}\n}}\n"


CHAIN = (
    "%a = f32[4]{0} negate(%x)",
    "%b = f32[4]{0} exponential(%a)",
    "%c = f32[4]{0} add(%b, %x)",
    "ROOT %d = f32[4]{0} multiply(%c, %b)",
)


def test_a_module_is_the_same_as_itself() -> None:
    assert set(kinds(MLP, MLP).values()) == {"same"}


def test_metadata_is_no_change() -> None:
    noted = entry(*(line + ', metadata={op_name="a{b}\\"c" source_line=3}' for line in CHAIN))
    assert set(kinds(entry(*CHAIN), noted).values()) == {"same"}


def test_fused_instructions_are_moved() -> None:
    fused = """%fused (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  %a.1 = f32[4]{0} negate(%p)
  ROOT %b.1 = f32[4]{0} exponential(%a.1)
}

"""
    after = entry("%f = f32[4]{0} fusion(%x), kind=kLoop, calls=%fused",
                  CHAIN[2].replace("%b", "%f"), CHAIN[3].replace("%b", "%f"), others=fused)  # fmt: skip
    there = kinds(entry(*CHAIN), after)
    assert there == {
        "p": "added", "a.1": "moved", "b.1": "moved", "x": "same", "f": "added", "c": "same", "d": "same",
    }  # fmt: skip
    back = kinds(after, entry(*CHAIN))
    assert (back["a"], back["b"], back["f"], back["c"]) == ("moved", "moved", "removed", "same")


def test_elements_of_a_fused_tuple_are_what_they_were() -> None:
    fused = """%fused (p: f32[4]) -> (f32[4], f32[4]) {
  %p = f32[4]{0} parameter(0)
  %a.1 = f32[4]{0} negate(%p)
  %b.1 = f32[4]{0} exponential(%a.1)
  ROOT %t = (f32[4]{0}, f32[4]{0}) tuple(%a.1, %b.1)
}

"""
    after = entry("%f = (f32[4]{0}, f32[4]{0}) fusion(%x), kind=kLoop, calls=%fused",
                  "%g = f32[4]{0} get-tuple-element(%f), index=1",
                  CHAIN[2].replace("%b", "%g"), CHAIN[3].replace("%b", "%g"), others=fused)  # fmt: skip
    found = kinds(entry(*CHAIN), after)
    assert (found["a.1"], found["b.1"], found["c"], found["d"]) == (
        "moved",
        "moved",
        "same",
        "same",
    )


def test_names_alone_are_renamed() -> None:
    text = entry(*CHAIN)
    for name in "abcd":
        text = (
            text.replace(f"%{name} ", f"%n.{name} ")
            .replace(f"%{name},", f"%n.{name},")
            .replace(f"%{name})", f"%n.{name})")
        )
    assert kinds(entry(*CHAIN), text) == {"x": "same", **{f"n.{n}": "renamed" for n in "abcd"}}


def test_names_that_are_exchanged_do_not_mislead() -> None:
    before = entry(
        "%n.1 = f32[4]{0} negate(%x)",
        "%n.2 = f32[4]{0} negate(%n.1)",
        "ROOT %n.3 = f32[4]{0} negate(%n.2)",
    )
    after = entry(
        "%n.3 = f32[4]{0} negate(%x)",
        "%n.1 = f32[4]{0} negate(%n.3)",
        "ROOT %n.2 = f32[4]{0} negate(%n.1)",
    )
    old, new, found = compared(before, after)
    pairs = {
        (old.rows[r.before].name, new.rows[r.after].name)
        for r in found.rows
        if r.before is not None and r.after is not None
    }
    assert pairs == {("x", "x"), ("n.1", "n.3"), ("n.2", "n.1"), ("n.3", "n.2")}


def test_a_change_changes_what_stands_there_alone() -> None:
    after = entry(CHAIN[0].replace("negate", "abs"), *CHAIN[1:])
    assert kinds(entry(*CHAIN), after) == {
        "x": "same",
        "a": "changed",
        "b": "same",
        "c": "same",
        "d": "same",
    }


def test_changed_and_renamed_is_found_by_context() -> None:
    after = entry(
        "%other = f32[4]{0:T(128)} negate(%x)",
        CHAIN[1].replace("%a", "%other").replace("exponential", "tanh"),
        *CHAIN[2:],
    )
    assert kinds(entry(*CHAIN), after) == {
        "x": "same",
        "other": "changed",
        "b": "changed",
        "c": "same",
        "d": "same",
    }


def test_of_equal_ones_the_missing_one_is_removed() -> None:
    before = entry(
        "%a = f32[4]{0} negate(%x)",
        "%a.1 = f32[4]{0} negate(%x)",
        "ROOT %c = f32[4]{0} add(%a, %a.1)",
    )
    after = entry("%a.1 = f32[4]{0} negate(%x)", "ROOT %c = f32[4]{0} add(%a.1, %a.1)")
    assert kinds(before, after) == {"x": "same", "a.1": "same", "c": "changed", "a": "removed"}


def test_loops_keep_their_bodies() -> None:
    loop = """%body (s: f32[4]) -> f32[4] {
  %s = f32[4]{0} parameter(0)
  ROOT %n = f32[4]{0} negate(%s)
}

%condition (t: f32[4]) -> pred[] {
  %t = f32[4]{0} parameter(0)
  ROOT %k = pred[] constant(false)
}

"""
    before = entry("ROOT %w = f32[4]{0} while(%x), condition=%condition, body=%body", others=loop)
    after = before.replace("%body", "%body.7").replace("%n =", "%n.7 =")
    found = kinds(before, after)
    assert (found["n.7"], found["s"], found["w"]) == ("renamed", "same", "same")


@pytest.mark.parametrize("style", ["percent", "bare"])
def test_styles_of_text(style: str) -> None:
    text = entry(*CHAIN) if style == "percent" else entry(*CHAIN).replace("%", "")
    listing = listing_of_text(text)
    assert [row.operands for row in listing.rows] == [(), (0,), (1,), (2, 0), (3, 2)]
    assert listing.entry == 0
    assert listing.opcodes[4] == "multiply"


def test_every_row_is_told_once() -> None:
    """Whatever lines are lost, exchanged and renamed, each row has one partner at most and no row is left out."""
    draw = random.Random(3)
    lines = MLP.split("\n")
    for _ in range(60):
        other = list(lines)
        for _ in range(draw.randrange(1, 12)):
            at = draw.randrange(len(other))
            match draw.randrange(4):
                case 0:
                    del other[at]
                case 1:
                    other.insert(at, other[draw.randrange(len(other))])
                case 2:
                    other[at] = other[at].replace("f32", "f64")
                case _:
                    other[at] = other[at].replace(".", ".9", 1)
        old, new, found = compared(MLP, "\n".join(other))
        assert [row.after for row in found.rows if row.after is not None] == list(
            range(len(new.rows))
        )
        assert sorted(row.before for row in found.rows if row.before is not None) == list(
            range(len(old.rows))
        )
        assert all((row.kind is Kind.ADDED) == (row.before is None) for row in found.rows)
        assert all((row.kind is Kind.REMOVED) == (row.after is None) for row in found.rows)


def test_circles_end() -> None:
    """Text that no module has: a computation that calls itself, an instruction that reads itself."""
    text = "%f (p: f32[4]) -> f32[4] {\n  %p = f32[4]{0} parameter(0)\n  ROOT %c = f32[4]{0} call(%p), to_apply=%f\n}\n"
    text += "ENTRY %e () -> f32[4] {\n  %a = f32[4]{0} add(%b, %a)\n"
    text += "  ROOT %b = f32[4]{0} get-tuple-element(%a), index=0\n}\n"
    assert set(kinds(text, text).values()) == {"same"}


def chain(count: int, suffix: str = "") -> str:
    lines = [
        f"%n{suffix}.{i} = f32[4]{{0}} negate(%{'x' if i == 0 else f'n{suffix}.{i - 1}'})"
        for i in range(count)
    ]
    return entry(*lines[:-1], "ROOT " + lines[-1])


def nest(count: int) -> str:
    heads = [
        "%c.0 (p.0: f32[4]) -> f32[4] {\n  %p.0 = f32[4]{0} parameter(0)\n  ROOT %n = f32[4]{0} negate(%p.0)\n}\n\n"
    ]
    heads += [
        f"%c.{i} (p.{i}: f32[4]) -> f32[4] {{\n  %p.{i} = f32[4]{{0}} parameter(0)\n"
        f"  %a.{i} = f32[4]{{0}} abs(%p.{i})\n  ROOT %k.{i} = f32[4]{{0}} call(%a.{i}), to_apply=%c.{i - 1}\n}}\n\n"
        for i in range(1, count)
    ]
    return entry(f"ROOT %r = f32[4]{{0}} call(%x), to_apply=%c.{count - 1}", others="".join(heads))


def wide(count: int) -> str:
    lines = [f"%n.{i} = f32[4]{{0}} negate(%x)" for i in range(count)]
    tuples = f"ROOT %t = ({', '.join(['f32[4]{0}'] * count)}) tuple({', '.join(f'%n.{i}' for i in range(count))})"
    return entry(*lines, tuples)


SIZES = {"chain": chain, "nest": nest, "wide": wide}


@pytest.mark.slow
@pytest.mark.parametrize("shape", SIZES)
def test_matching_takes_linear_time(shape: str) -> None:
    calls: list[int] = []
    for count in (1_500, 6_000):
        before = SIZES[shape](count)
        after = before.replace(
            f".{count // 2} = f32[4]{{0}} ", f".{count // 2} = f32[4]{{0:T(128)}} "
        )
        found: list[Match] = []

        def compare(texts: tuple[str, str] = (before, after), found: list[Match] = found) -> None:
            interner = Interner()
            found.append(match(*(Structure(listing_of_text(text), interner) for text in texts)))

        calls.append(calls_of(compare))
        assert found[0].counts[Kind.ADDED] == found[0].counts[Kind.REMOVED] == 0
    assert calls[1] < 4.4 * calls[0], calls
