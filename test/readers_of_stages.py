"""Texts of the CPU compiler's stages, and who reads them: MLIR, xDSL's tools, this project."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.universe import Universe
from xdsl.utils.exceptions import ParseError, VerifyException

from mlirhlo.cli import stage_files
from mlirhlo.diagnostics import HloError
from mlirhlo.lowering.cpu.compiler import lower
from mlirhlo.lowering.stage_text import print_stage


@dataclass(frozen=True, slots=True)
class StageTexts:
    """What is printed of one program."""

    by_stage: dict[str, str]
    """Text by stage: loops and llvm-dialect."""
    llvm: str


def stage_texts(module: ModuleOp) -> StageTexts:
    """The stages of an HLO module. Raises `HloError` for what has no code."""
    stages = lower(module)
    texts = {"loops": print_stage(stages.loops), "llvm-dialect": print_stage(stages.llvm)}
    return StageTexts(texts, stages.text)


def fault_of_mlir(text: str) -> str:
    """What the MLIR inside jaxlib has against a text; empty where it reads and verifies it."""
    import mlir_oracle

    try:
        module = mlir_oracle.parse(text)
        with module.context:
            module.operation.verify()
    except Exception as problem:  # noqa: BLE001  of many classes
        return str(problem).strip() or type(problem).__name__
    return ""


@cache
def _universe() -> Universe:
    return Universe.get_multiverse()


def fault_of_xdsl(text: str) -> str:
    """What `xdsl-opt` has against a text, with this project's plugin; empty where it reads and verifies it."""
    context = Context()
    for name, factory in _universe().all_dialects.items():
        context.register_dialect(name, factory)
    try:
        Parser(context, text).parse_module().verify()
    except (ParseError, VerifyException) as problem:
        return str(problem).strip()
    return ""


def fault_of_reader(texts: StageTexts, stage: str) -> str:
    """Why a stage's text does not give the LLVM text that the program gives; empty where it does."""
    data = texts.by_stage[stage].encode()
    found = stage_files.stage_of(data)
    if found != stage:
        return f"taken for {found}"
    try:
        again = stage_files.continued(data, stage, "llvm", stage)
    except HloError as problem:
        return str(problem)
    return "" if again == texts.llvm else "other LLVM text"
