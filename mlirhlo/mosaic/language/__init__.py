"""The language that kernels are written in; `mlirhlo.mosaic` offers it."""
