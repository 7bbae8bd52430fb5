"""A bug report of a culprit: the module before and after it, as a folder of dumps that shows the fault again."""

from __future__ import annotations

import os
import re
import tempfile

from mlirhlo.debug.index import read_folder
from mlirhlo.debug.index.pack import pack


def write_report(
    path: str, name: str, pass_name: str, pipeline: str, before: str, after: str, said: str
) -> None:
    """Writes an archive whose two stages are the module before and after the culprit.

    `said`: the findings, for its README. `hlo-bisect ARCHIVE` finds them again. Raises `HloError` HLO0503.
    """
    module = re.sub(r"[^\w]", "_", name)[:60] or "module"
    step = re.sub(r"[^\w-]", "_", pass_name)[:60] or "pass"
    group = re.sub(r"[^\w-]", "_", pipeline)[:60] or "pipeline"
    with tempfile.TemporaryDirectory(prefix="hlo-bisect-") as folder:
        files = {
            f"module_0000.{module}.before_optimizations.txt": before,
            f"module_0000.{module}.0000.{group}.after_{step}.before_pipeline-end.txt": after,
        }
        for file, text in files.items():
            with open(os.path.join(folder, file), "wb") as opened:
                opened.write(text.encode("utf-8", "surrogateescape"))
        how = f"{said}\n\nhlo-bisect {os.path.basename(path)} shows the fault again.\n"
        pack(read_folder(folder).modules[0], path, with_passes=True, readme=how)
