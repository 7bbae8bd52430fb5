"""The rule driver: same result as xDSL's walker, fuel, choice of rules, counts, names, metadata."""

import pytest
from xdsl.pattern_rewriter import GreedyRewritePatternApplier, PatternRewriteWalker

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo import HloModule
from mlirhlo.dialects.hlo.ops import AddOp, NegateOp, SubtractOp
from mlirhlo.formats.mlir import parse_module, print_module
from mlirhlo.rewrites.passes import Trace
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline
from mlirhlo.rewrites.rules import Rewriter, RulePass, apply_rules, rule
from mlirhlo.rewrites.simplify.tuple_simplifier import TupleSimplifierPass


@rule(SubtractOp)
def subtract_of_negate(op: SubtractOp, rewriter: Rewriter) -> None:
    """x - (-y) => x + y"""
    if not isinstance(negate := op.rhs.owner, NegateOp):
        return
    rewriter.replace(op, rewriter.build(AddOp, op.lhs, negate.operand))


@rule(NegateOp)
def negate_of_negate(op: NegateOp, rewriter: Rewriter) -> None:
    """-(-x) => x"""
    if isinstance(inner := op.operand.owner, NegateOp):
        rewriter.replace_by_value(op, inner.operand)


RULES = (subtract_of_negate, negate_of_negate)

TEXT = """\
builtin.module @m {
  hlo.computation entry @e {
    %x = hlo.parameter 0 : tensor<4xf32>
    %y = hlo.parameter 1 : tensor<4xf32>
    %a = hlo.negate %y : tensor<4xf32>
    %b = hlo.negate %a : tensor<4xf32>
    %c = hlo.negate %b {metadata = #hlo.metadata<"{op_name=\\22f\\22}">} : tensor<4xf32>
    %s_7 = hlo.subtract %x, %c {metadata = #hlo.metadata<"{op_name=\\22g\\22}">} : tensor<4xf32>
    %r = hlo.subtract %s_7, %a : tensor<4xf32>
    hlo.return %r
  }
}
"""


def test_the_driver_and_xdsls_walker_agree() -> None:
    ours, theirs = parse_module(TEXT), parse_module(TEXT)
    assert apply_rules(ours, RULES)
    patterns = [r.pattern for r in RULES]
    assert PatternRewriteWalker(GreedyRewritePatternApplier(patterns)).rewrite_module(theirs)
    ours.verify()
    # xDSL's walker drops what has no effect and no reader; the driver leaves it to `dce`.
    run_pipeline(ours, parse_pipeline("dce"))
    run_pipeline(theirs, parse_pipeline("dce"))
    assert print_module(ours) == print_module(theirs)
    assert not apply_rules(ours, RULES)


def test_the_tuple_rules_agree_with_xdsls_walker_too() -> None:
    text = """\
builtin.module @m {
  hlo.computation entry @e {
    %p = hlo.parameter 0 : tuple<tensor<f32>, tensor<f32>>
    %g = hlo.get_tuple_element %p {index = 0 : i64} : tensor<f32>
    %h = hlo.get_tuple_element %p {index = 1 : i64} : tensor<f32>
    %t = hlo.tuple %g, %h : tuple<tensor<f32>, tensor<f32>>
    %i = hlo.get_tuple_element %t {index = 1 : i64} : tensor<f32>
    %u = hlo.tuple %i, %t : tuple<tensor<f32>, tuple<tensor<f32>, tensor<f32>>>
    hlo.return %u
  }
}
"""
    ours, theirs = parse_module(text), parse_module(text)
    apply_rules(ours, TupleSimplifierPass.rules)
    patterns = [r.pattern for r in TupleSimplifierPass.rules]
    PatternRewriteWalker(GreedyRewritePatternApplier(patterns)).rewrite_module(theirs)
    assert print_module(ours) == print_module(theirs)


def test_new_instructions_take_the_metadata_of_what_they_replace() -> None:
    module = parse_module(TEXT)
    apply_rules(module, RULES)
    adds = [op for op in HloModule(module).instructions if isinstance(op, AddOp)]
    names = [op.metadata.op_name for op in adds if op.metadata is not None]
    assert names == ["g"]


def test_an_instruction_of_the_same_opcode_keeps_the_name() -> None:
    @rule(SubtractOp)
    def swap(op: SubtractOp, rewriter: Rewriter) -> None:
        """x - y => y - x, once"""
        if op.metadata is not None and op.instruction_name == "s_7":
            fresh = rewriter.build(SubtractOp, op.rhs, op.lhs)
            fresh.properties["metadata"] = op.properties["metadata"]
            rewriter.replace(op, fresh)

    module = parse_module(TEXT)
    apply_rules(module, [swap], fuel=1)
    assert "%s_7 = hlo.subtract %c, %x" in print_module(module)


def test_a_value_without_a_name_takes_all_of_the_name() -> None:
    """xDSL takes the number off `s_7`; HLO's names of several results may differ in nothing else."""

    @rule(SubtractOp)
    def by_negate(op: SubtractOp, rewriter: Rewriter) -> None:
        """x - y => z, once"""
        if op.instruction_name == "s_7":
            negate = op.rhs.owner
            assert isinstance(negate, NegateOp)
            negate.instruction_name = None
            rewriter.replace_by_value(op, negate.output)

    module = parse_module(TEXT)
    apply_rules(module, [by_negate], fuel=1)
    assert "%s_7 = hlo.negate %b" in print_module(module)


@pytest.mark.parametrize("fuel, rewrites", [(0, 0), (1, 1), (2, 2), (100, 3)])
def test_fuel_bounds_the_rewrites(fuel: int, rewrites: int) -> None:
    trace = Trace()
    changed = apply_rules(parse_module(TEXT), RULES, fuel=fuel, trace=trace, name="p")
    assert changed == (rewrites > 0)
    assert sum(trace.rule_counts.values()) == rewrites


def test_counts_and_listeners_name_the_rule() -> None:
    trace, heard = Trace(), list[str]()
    trace.listeners.append(lambda what, op: heard.append(what.split(":")[0]))
    apply_rules(parse_module(TEXT), RULES, trace=trace, name="p")
    assert trace.rule_counts["p", "subtract_of_negate"] == heard.count("subtract_of_negate") > 0
    assert trace.rule_counts["p", "negate_of_negate"] == heard.count("negate_of_negate") > 0


def test_rules_need_an_equation() -> None:
    with pytest.raises(ValueError, match="equation"):

        @rule(NegateOp)
        def bad(op: NegateOp, rewriter: Rewriter) -> None:
            """No arrow."""


@pytest.mark.parametrize(
    "pipeline, code",
    [
        ("nope", "HLO0401"),
        ("dce,,cse", "HLO0400"),
        ("cse{nope}", "HLO0402"),
        ("cse{is-layout-sensitive=7}", "HLO0402"),
        ("tuple-simplifier{only=nope}", "HLO0403"),
    ],
)
def test_bad_pipelines_are_diagnosed(pipeline: str, code: str) -> None:
    with pytest.raises(HloError) as caught:
        run_pipeline(parse_module(TEXT), parse_pipeline(pipeline))
    assert caught.value.code == code


def test_disabled_rules_do_not_fire() -> None:
    class Pass(RulePass):
        name = "p"
        rules = RULES

    trace = Trace()
    Pass(disable=("negate_of_negate",)).run(HloModule(parse_module(TEXT)), trace)
    assert {key for _, key in trace.rule_counts} == {"subtract_of_negate"}
