"""The attributes of the stablehlo dialect that are one word of a closed list."""

from __future__ import annotations

from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser

from mlirhlo.dialects.stablehlo.structs import EnumAttr, TextualAttr, numbered


@irdl_attr_definition
class ComparisonDirectionAttr(EnumAttr):
    """`#stablehlo<comparison_direction LT>`."""

    name = "stablehlo.comparison_direction"
    cases = numbered("EQ", "NE", "GE", "GT", "LE", "LT")


@irdl_attr_definition
class ComparisonTypeAttr(EnumAttr):
    """`#stablehlo<comparison_type FLOAT>`."""

    name = "stablehlo.comparison_type"
    cases = numbered("NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED")


@irdl_attr_definition
class PrecisionAttr(EnumAttr):
    """`#stablehlo<precision HIGHEST>`."""

    name = "stablehlo.precision"
    cases = numbered("DEFAULT", "HIGH", "HIGHEST")


@irdl_attr_definition
class FftTypeAttr(EnumAttr):
    """`#stablehlo<fft_type RFFT>`."""

    name = "stablehlo.fft_type"
    cases = numbered("FFT", "IFFT", "RFFT", "IRFFT")


@irdl_attr_definition
class TransposeAttr(EnumAttr):
    """`#stablehlo<transpose NO_TRANSPOSE>`."""

    name = "stablehlo.transpose"
    cases = numbered("TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")


@irdl_attr_definition
class RngDistributionAttr(EnumAttr):
    """`#stablehlo<rng_distribution UNIFORM>`."""

    name = "stablehlo.rng_distribution"
    cases = numbered("UNIFORM", "NORMAL", start=1)


@irdl_attr_definition
class RngAlgorithmAttr(EnumAttr):
    """`#stablehlo<rng_algorithm THREE_FRY>`."""

    name = "stablehlo.rng_algorithm"
    cases = numbered("DEFAULT", "THREE_FRY", "PHILOX")


RESULT_ACCURACY_MODES = numbered("DEFAULT", "HIGHEST", "TOLERANCE")


@irdl_attr_definition
class ResultAccuracyModeAttr(TextualAttr[str]):
    """`#stablehlo.result_accuracy_mode<DEFAULT>`."""

    name = "stablehlo.result_accuracy_mode"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        """Reads `<WORD>`."""
        with parser.in_angle_brackets():
            start = parser.pos
            word = parser.parse_identifier()
            if word not in RESULT_ACCURACY_MODES:
                parser.raise_error(
                    f"result_accuracy_mode is one of {', '.join(RESULT_ACCURACY_MODES)}", start
                )
        return word

    def spelled(self) -> str:
        """`<WORD>`."""
        return f"<{self.data}>"
