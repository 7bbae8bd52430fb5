"""Special functions of floats. The names are those of `jax.scipy.special`."""

from __future__ import annotations

from mlirhlo.mosaic.language.functions.arithmetic import erf, log1p
from mlirhlo.mosaic.language.functions.arithmetic import logistic as expit
from mlirhlo.mosaic.language.functions.derived import erfc
from mlirhlo.mosaic.language.functions.elementary import (
    entr,
    kl_div,
    logit,
    rel_entr,
    xlog1py,
    xlogy,
)
from mlirhlo.mosaic.language.functions.lacking import lacking
from mlirhlo.mosaic.language.functions.random import erf_inv as erfinv
from mlirhlo.mosaic.language.outside.hosted import hosted
from mlirhlo.mosaic.nn import log_softmax, logsumexp, softmax

__all__ = [
    "entr",
    "erf",
    "erfc",
    "erfinv",
    "expit",
    "kl_div",
    "log1p",
    "log_softmax",
    "logit",
    "logsumexp",
    "rel_entr",
    "softmax",
    "xlog1py",
    "xlogy",
]

# Around kernels, the same names are functions on arrays.
globals().update(hosted(__all__, globals()))

__getattr__ = lacking(__name__, __all__)
