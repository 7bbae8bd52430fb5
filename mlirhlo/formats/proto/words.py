"""The words of HLO text for the enums of protos, made from the enums' own names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from mlirhlo.formats.proto.message import DecodeProblem
from mlirhlo.formats.proto.module_pb2 import (
    ConvolutionKind,
    CustomCallApiVersion,
    CustomCallSchedule,
)
from mlirhlo.formats.proto.op_attributes_pb2 import (
    FftType,
    PaddingType,
    PrecisionConfig,
    RandomAlgorithm,
    RandomDistribution,
    TriangularSolveOptions,
)


class EnumNumbers(Protocol):
    """A generated enum."""

    def items(self) -> Sequence[tuple[str, int]]:
        """Names and numbers."""
        ...


@dataclass(frozen=True, slots=True)
class Words:
    """The words of HLO text for the values of a proto enum."""

    what: str
    to_word: Mapping[int, str]

    @staticmethod
    def of(enum: Any, what: str, *, drop: str = "", lower: bool = False) -> Words:
        """Words are the enum's names without the prefix `drop`, in lower case if asked."""
        names = cast(EnumNumbers, enum).items()
        words = {number: name.removeprefix(drop) for name, number in names}
        return Words(what, {n: w.lower() for n, w in words.items()} if lower else words)

    def word(self, number: int) -> str:
        """The word of a value. Raises `DecodeProblem` HLO0215."""
        found = self.to_word.get(number)
        if found is None or found.upper().endswith("_INVALID"):
            raise DecodeProblem("HLO0215", f"{self.what}: {number} is not a value")
        return found

    def number(self, word: str) -> int:
        """The value of a word."""
        return next(number for number, known in self.to_word.items() if known == word)


FFT_TYPES = Words.of(FftType, "fft_type")
DISTRIBUTIONS = Words.of(RandomDistribution, "distribution", lower=True)
RNG_ALGORITHMS = Words.of(RandomAlgorithm, "rng_algorithm", lower=True)
PADDING_TYPES = Words.of(PaddingType, "padding_type")
SCHEDULES = Words.of(CustomCallSchedule, "custom_call_schedule")
API_VERSIONS = Words.of(CustomCallApiVersion, "custom_call_api_version")
CONVOLUTION_KINDS = Words.of(ConvolutionKind, "conv_kind", drop="CONVOLUTION_KIND_", lower=True)
PRECISIONS = Words.of(PrecisionConfig.Precision, "operand_precision", lower=True)
DOT_ALGORITHMS = Words.of(PrecisionConfig.Algorithm, "algorithm", drop="ALG_", lower=True)
TRANSPOSES = Words.of(TriangularSolveOptions.Transpose, "transpose_a")
