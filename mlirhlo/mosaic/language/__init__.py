"""The language that kernels are written in; `mlirhlo.mosaic` offers it."""

from mlirhlo.mosaic.language.functions import methods as methods
