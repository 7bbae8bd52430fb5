"""PyTorch's exported models, run here; `load` needs no PyTorch, `export` does.

    >>> from mlirhlo.torch import load
    >>> model = load("test/data/torch/linear_relu")
    >>> model
    <mlirhlo.torch.Bundle: forward; 2 weights>

`docs/integrations.md` shows all of it.
"""

from __future__ import annotations

from mlirhlo.integrations.torch.bundles import Bundle, Location, Method, Signature, load
from mlirhlo.integrations.torch.export import export

__all__ = ["Bundle", "Location", "Method", "Signature", "export", "load"]
