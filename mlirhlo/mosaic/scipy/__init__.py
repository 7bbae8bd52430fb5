"""`jax.scipy`'s functions within kernels: `special`."""

from mlirhlo.mosaic.scipy import special

__all__ = ["special"]
