"""The options of `run_hlo_module`."""

from __future__ import annotations

from dataclasses import dataclass

from mlirhlo.cli.options import flag

INTERPRETER = "Interpreter"
"""The platform's name."""
_SEED = 42

_TEST = "Test"
_DATA = "Inputs"
_LOOK = "Looking"


@dataclass
class Options:
    """The command line of run_hlo_module."""

    platform: str = flag("", group=_TEST, metavar="Interpreter|CPU|CUDA", help="what runs it")
    gpu: str = flag(
        "", group=_TEST, metavar="simulated|h100|sm_80", help="GPU that CUDA code is made for"
    )
    gpu_target_config: str = flag(
        "",
        "gpu_target_config",
        group=_TEST,
        metavar="FILE",
        help="a GPU that XLA described",
        rare=True,
    )
    reference_platform: str = flag(
        "default",
        "reference_platform",
        group=_TEST,
        metavar="P",
        help="compare with; '' = only run",
    )
    threads: int = flag(
        0,
        group=_TEST,
        metavar="N",
        least=0,
        help="of compiled code [OMP_NUM_THREADS, else all]",
    )
    passes: tuple[str, ...] = flag(
        (), "p", group=_TEST, metavar="a,b", help="passes on the tested module, not the reference"
    )
    load_pass: tuple[str, ...] = flag(
        (), group=_TEST, metavar="FILE.py", help="passes of your own, for --passes"
    )
    iterations: int = flag(1, group=_TEST, metavar="N", least=1, help="runs, each with new data")
    abs_error_bound: float = flag(
        1e-3, "abs_error_bound", group=_TEST, metavar="X", help="absolute"
    )
    rel_error_bound: float = flag(
        1e-3, "rel_error_bound", group=_TEST, metavar="X", help="relative; either one is enough"
    )
    check_memory: bool = flag(
        False, "check_memory", group=_TEST, help="check every access of compiled code", rare=True
    )
    profile: str = flag(
        "",
        group=_LOOK,
        metavar="FILE",
        help="time of each kernel, a Chrome trace to FILE; of CUDA figures",
        rare=True,
    )
    isolate_instructions: bool = flag(
        False, "isolate_instructions", group=_TEST, help="each instruction as a module of its own"
    )
    num_replicas: int = flag(
        0, "num_replicas", group=_TEST, metavar="N", least=0, help="", rare=True
    )
    num_partitions: int = flag(
        0,
        "num_partitions",
        group=_TEST,
        metavar="N",
        least=0,
        help="devices; a sharded module is partitioned [as it says]",
    )
    input_format: str | None = flag(
        None,
        "input_format",
        "format",
        "f",
        group=_DATA,
        metavar="F",
        help="of the module (by content)",
    )
    input_module: str | None = flag(
        None, "input_module", group=_DATA, metavar="FILE", help="the module, as without the flag"
    )
    input_npz: str | None = flag(
        None,
        "input_npz",
        group=_DATA,
        metavar="FILE",
        help="arrays in0, in1, … (in0.p3: of partition 3)",
    )
    output_npz: str | None = flag(
        None, "output_npz", group=_DATA, metavar="FILE", help="write results as out0, out1, …"
    )
    input_literals_file: str | None = flag(
        None, "input_literals_file", group=_DATA, metavar="FILE", help="RunHloModuleLiterals proto"
    )
    output_literals_file: str | None = flag(
        None, "output_literals_file", group=_DATA, metavar="FILE", help="the same, written"
    )
    force_fake_data: bool = flag(
        False, "force_fake_data", group=_DATA, help="leave the inputs of a snapshot aside"
    )
    use_large_float_range: bool = flag(
        False, "use_large_float_range", group=_DATA, help="fake floats from all of the range"
    )
    random_init_input_literals: bool = flag(
        True, "random_init_input_literals", group=_DATA, help="false: fake data are zeros"
    )
    fake_constants: bool = flag(
        False, "fake_constants", group=_DATA, help="values for constants left out: {...}"
    )
    different_random_seeds: bool = flag(
        False, "different_random_seeds", group=_DATA, help="seed = number of the iteration"
    )
    seed: int = flag(_SEED, group=_DATA, metavar="N", least=0, help="of fake data and of rng")
    print_literals: bool = flag(
        False, "print_literals", group=_LOOK, help="inputs and results, to stdout"
    )
    trace: bool = flag(False, group=_LOOK, help="every instruction and its value, to stderr")
    step: bool = flag(False, group=_LOOK, help="the same, waiting for a key after each")
    verify: bool = flag(True, group=_LOOK, help="check the module: --no-verify turns it off")
    timing: bool = flag(False, "profile_execution", group=_LOOK, help="", rare=True)
    help: bool = flag(False, "h", group="Help", help="")
    help_all: bool = flag(False, group="Help", help="", rare=True)
    version: bool = flag(False, "v", group="Help", help="")
    debug: bool = flag(False, group="Help", help="Python traceback of an error")
    # Compiler switches of XLA's tool; interpreting has no use for them.
    run_test_hlo_passes: bool = flag(True, group="Help", help="")
    run_reference_hlo_passes: bool = flag(True, group="Help", help="")
    flatten_control_flow: bool = flag(False, group="Help", help="")
    treat_gte_as_data_formatting: bool = flag(False, group="Help", help="")
    use_buffer_assignment_from_proto: bool = flag(False, group="Help", help="")
    run_xla_backend_only: bool = flag(False, group="Help", help="")
