"""The passes of the real XLA inside JAX, recorded by compiling a module in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager

from mlirhlo.diagnostics import error

_SECONDS = 600


@contextmanager
def recorded_by_xla(text: str, disabled: str = "") -> Generator[str]:
    """A folder with the dump of every pass of XLA:CPU on a module, as long as the block runs.

    `disabled`: names for `--xla_disable_hlo_passes`. Raises `HloError` HLO0865 when XLA cannot compile it.
    """
    with tempfile.TemporaryDirectory(prefix="hlo-bisect-xla-") as folder:
        module, dumps = os.path.join(folder, "module.hlo"), os.path.join(folder, "dumps")
        with open(module, "wb") as file:
            file.write(text.encode("utf-8", "surrogateescape"))
        flags = [
            f"--xla_dump_to={dumps}",
            "--xla_dump_hlo_pass_re=.*",
            "--xla_dump_large_constants",
        ]
        if disabled:
            flags.append(f"--xla_disable_hlo_passes={disabled}")
        code = (
            "import sys, mlirhlo\n"
            "from mlirhlo.integrations.xla import XlaProgram\n"
            "XlaProgram(mlirhlo.load(sys.argv[1]).static_op, {})\n"
        )
        environment = {**os.environ, "XLA_FLAGS": " ".join(flags), "JAX_PLATFORMS": "cpu"}
        try:
            done = subprocess.run(
                [sys.executable, "-c", code, module],
                env=environment,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise error("HLO0865", f"XLA compiles the module for more than {_SECONDS} s") from None
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            raise error("HLO0865", f"XLA does not compile the module: {said[-1] if said else ''}")
        yield dumps
