"""What the HLO text printer writes; the presets are XLA's.

Source: HLO text, "Options and presets".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum


class Subcomputations(Enum):
    """How called computations appear in the instruction that calls them."""

    OFF = "off"
    NAMES = "names"
    BODIES = "bodies"
    """Whole, at the caller's indentation."""


class ComputationOrder(Enum):
    """In which order the computations of a module are printed."""

    KEPT = "kept"
    """As stored where that has callees before callers, else as XLA walks them.

    A dump was printed from an order of instructions that its text no longer tells, so walking it
    anew would shuffle it (XLA's own reader and printer do).
    """
    WALKED = "walked"
    """As XLA's printer walks them: depth first along the stored instructions."""
    STORED = "stored"
    """As stored."""


@dataclass(frozen=True, slots=True)
class PrintOptions:
    """Every switch of the printer. The defaults are the text of `--xla_dump_to`."""

    large_constants: bool = False
    """Write constants of more than ten elements in full instead of `{...}`."""
    essential_constants: bool = False
    """Write constants as a fingerprint needs them: `0`, `1`, or integers in full."""
    subcomputations: Subcomputations = Subcomputations.NAMES
    metadata: bool = True
    """`metadata={…}`, metadata of shardings and the stack-frame tables."""
    metadata_only_op_name: bool = False
    inline_stack_frames: bool = False
    """Write a frame's file, line and column in place of `stack_frame_id`; the tables stay, as in XLA's
    dumps."""
    backend_config: bool = True
    sorted_backend_config: bool = False
    """Sort the keys of a backend_config that is JSON."""
    custom_call_bodies: bool = True
    """Off: a custom call's backend_config is `{...}`."""
    operand_shapes: bool = False
    operand_names: bool = True
    operand_index_interval: int = 5
    """A comment `/*index=5*/` before every so-manieth operand; 0 for none."""
    compact_operands: bool = False
    """After four operands, only the number of the others."""
    result_shapes: bool = True
    layouts: bool = True
    """Layouts in shapes of results and operands."""
    program_shape: bool = True
    """Signatures of computations."""
    percent: bool = True
    control_predecessors: bool = True
    canonical_names: bool = False
    """Instructions are `tmp_0`, `tmp_1`, … in every computation."""
    ids: bool = True
    """Names of module and computations, numbers in instruction names, execution threads."""
    computation_order: ComputationOrder = ComputationOrder.KEPT
    stored_instruction_order: bool = False
    """Instructions as they are stored, which for a text read is as it had them. XLA, and the default,
    walk an unscheduled computation depth first instead."""
    full_replica_groups: bool = False
    """Iota and mesh replica groups as lists."""
    infeed_outfeed_config: bool = True
    origin: bool = True
    frontend_attributes: bool = True
    sharding: bool = True
    extra_attributes: bool = True
    """What is particular to the opcode, called computations aside."""
    channel_ids: bool = True
    parameter_numbers: bool = True
    async_sugar: bool = False
    """`add-start(…)` for an `async-start` whose computation is one instruction on its parameters.

    XLA's library default is on, that of its dumps off.
    """
    name_after_closing_brace: bool = False
    """`// name` after the brace of computations with more than five instructions."""
    indent: int = 0
    """Indentation of the whole, in steps of two blanks."""

    @staticmethod
    def short_parsable() -> PrintOptions:
        """As JAX's `as_text("hlo")` prints: everything that matters and can be read back."""
        return PrintOptions(
            large_constants=True,
            metadata=False,
            operand_index_interval=0,
            program_shape=False,
            percent=False,
            control_predecessors=False,
            async_sugar=True,
        )

    @staticmethod
    def short_dump() -> PrintOptions:
        """As dumps with `--xla_dump_hlo_as_long_text=false`."""
        return PrintOptions(
            operand_index_interval=0,
            program_shape=False,
            percent=False,
            control_predecessors=False,
        )

    @staticmethod
    def canonical() -> PrintOptions:
        """Independent of names, bodies written where they are called."""
        return PrintOptions(
            subcomputations=Subcomputations.BODIES,
            metadata=False,
            backend_config=False,
            operand_shapes=True,
            operand_names=False,
            operand_index_interval=0,
            program_shape=False,
            percent=False,
            control_predecessors=False,
            canonical_names=True,
            async_sugar=True,
        )

    @staticmethod
    def fingerprint() -> PrintOptions:
        """What XLA hashes to tell whether two modules compile to the same program."""
        return replace(
            PrintOptions.canonical(),
            essential_constants=True,
            ids=False,
            computation_order=ComputationOrder.STORED,
            full_replica_groups=True,
            infeed_outfeed_config=False,
        )

    @staticmethod
    def module_fingerprint() -> PrintOptions:
        """`fingerprint` without operand shapes."""
        return replace(PrintOptions.fingerprint(), operand_shapes=False)
