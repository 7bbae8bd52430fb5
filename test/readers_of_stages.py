"""Texts of the compilers' stages, and who reads them: MLIR, xDSL's tools, this project."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.universe import Universe
from xdsl.utils.exceptions import ParseError, VerifyException

from mlirhlo.cli.opt import gpu_stages, stage_files
from mlirhlo.debug.options import Flags
from mlirhlo.diagnostics import HloError
from mlirhlo.lowering.cpu.compiler import lower
from mlirhlo.lowering.gpu.compiler import merged, plan_gpu, schedule_all
from mlirhlo.lowering.gpu.host import code_of, kernels_in, whole_program, with_code
from mlirhlo.lowering.gpu.nvvm import to_nvvm
from mlirhlo.lowering.gpu.ptx import to_llvm_text
from mlirhlo.lowering.stage_text import print_stage
from mlirhlo.lowering.structured import structured_module
from mlirhlo.runtime.cuda.devices import device_of


@dataclass(frozen=True, slots=True)
class StageTexts:
    """What is printed of one program."""

    by_stage: dict[str, str]
    """Text by stage, of modules of operations."""
    generic: dict[str, str]
    """The generic form of those stages that have ops of this project in their own syntax."""
    llvm: str
    platform: str = "cpu"


def stage_texts(module: ModuleOp) -> StageTexts:
    """The stages of an HLO module on the CPU. Raises `HloError` for what has no code or no structured form."""
    stages = lower(module)
    structured = structured_module(stages.fused, stages.plan.instructions, stages.plan.kernels)
    modules = {"structured": structured, "loops": stages.loops, "llvm-dialect": stages.llvm}
    return _printed(modules, stages.text, "cpu")


def gpu_stage_texts(module: ModuleOp) -> StageTexts:
    """The stages of an HLO module on a GPU. Raises `HloError` for what has no code."""
    device = device_of("", Flags())
    fused, plan = plan_gpu(module, device)
    structured = structured_module(fused, plan.instructions, plan.kernels)
    scheduled = structured.clone()
    schedule_all(scheduled, device)
    program = whole_program(merged(plan.kernels), plan)
    nvvm = with_code(program.clone(), to_nvvm(kernels_in(program)))
    modules = {"structured": structured, "scheduled": scheduled, "gpu": program, "nvvm": nvvm}
    return _printed(modules, to_llvm_text(code_of(nvvm), device), "gpu")


def faults_of_mlir(texts: StageTexts) -> list[str]:
    """What MLIR has against the texts of the stages, in order; the generic form of those with ops of this project."""
    return [fault_of_mlir(texts.generic.get(s, text)) for s, text in texts.by_stage.items()]


def _printed(modules: dict[str, ModuleOp], llvm: str, platform: str) -> StageTexts:
    generic = {
        stage: print_stage(module, is_generic=True)
        for stage, module in modules.items()
        if stage in ("structured", "scheduled", "gpu", "nvvm")
    }
    return StageTexts({s: print_stage(m) for s, m in modules.items()}, generic, llvm, platform)


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


def read_by_xdsl(text: str) -> ModuleOp:
    """The module that `xdsl-opt` reads, with this project's plugin. Raises `ParseError`."""
    context = Context()
    for name, factory in _universe().all_dialects.items():
        context.register_dialect(name, factory)
    return Parser(context, text).parse_module()


def fault_of_xdsl(text: str) -> str:
    """What `xdsl-opt` has against a text; empty where it reads and verifies it."""
    try:
        read_by_xdsl(text).verify()
    except (ParseError, VerifyException) as problem:
        return str(problem).strip()
    return ""


def fault_of_reader(texts: StageTexts, stage: str) -> str:
    """Why a stage's text does not give the LLVM text that the program gives, so the same machine code; empty where it
    does. Of structured kernels on the CPU, which nothing is made of, why it does not give the text again."""
    data = texts.by_stage[stage].encode("utf-8", "surrogateescape")
    is_gpu = texts.platform == "gpu"
    match = (gpu_stages if is_gpu else stage_files).stage_of(data)
    is_last = stage == "structured" and not is_gpu
    if match != stage and not (match == "structured" and stage == "scheduled"):  # no launches
        return f"taken for {match}"
    try:
        wanted = stage if is_last else "llvm"
        if is_gpu:
            again = gpu_stages.continued(data, match, wanted, stage, "", Flags())
        else:
            again = stage_files.continued(data, stage, wanted, stage)
    except HloError as problem:
        return str(problem)
    if isinstance(again, ModuleOp):
        return "" if print_stage(again) == texts.by_stage[stage] else "another text"
    return "" if again == texts.llvm else "other LLVM text"
