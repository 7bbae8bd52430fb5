"""Rules of complex, real and imag."""

from __future__ import annotations

from mlirhlo.dialects.hlo.ops import ComplexOp, ImagOp, RealOp
from mlirhlo.rewrites.algsimp.common import Builder, array, element, forward, made_by
from mlirhlo.rewrites.rules import Rewriter, rule


@rule(ComplexOp, reads=(ImagOp,))
def complex_of_its_parts(op: ComplexOp, rewriter: Rewriter) -> None:
    """complex(real(c), imag(c)) => c"""
    real, imag = made_by(op.real, RealOp), made_by(op.imag, ImagOp)
    if real is not None and imag is not None and real.operand is imag.operand:
        forward(op, rewriter, real.operand)


@rule(RealOp, reads=(ComplexOp,))
def real_of_complex(op: RealOp, rewriter: Rewriter) -> None:
    """real(complex(r, i)) => r"""
    if (whole := made_by(op.operand, ComplexOp)) is not None:
        forward(op, rewriter, whole.real)


@rule(RealOp)
def real_of_real(op: RealOp, rewriter: Rewriter) -> None:
    """real(x) => x, x not complex"""
    if not element(op.operand).is_complex:
        forward(op, rewriter, op.operand)


@rule(ImagOp, reads=(ComplexOp,))
def imag_of_complex(op: ImagOp, rewriter: Rewriter) -> None:
    """imag(complex(r, i)) => i"""
    if (whole := made_by(op.operand, ComplexOp)) is not None:
        forward(op, rewriter, whole.imag)


@rule(ImagOp)
def imag_of_real(op: ImagOp, rewriter: Rewriter) -> None:
    """imag(x) => 0, x not complex"""
    if not element(op.operand).is_complex and not array(op).is_dynamic:
        b = Builder(op, rewriter)
        b.splat(array(op), 0)
        b.done()


RULES = (complex_of_its_parts, real_of_complex, real_of_real, imag_of_complex, imag_of_real)
