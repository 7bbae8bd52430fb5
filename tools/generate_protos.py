#!/usr/bin/env python3
"""Renew the generated protobuf modules from the `.proto` files.

    python tools/generate_protos.py            # write mlirhlo/formats/proto/*_pb2.py and *_pb2.pyi
    python tools/generate_protos.py --check    # write nothing, fail if a file is out of date

Needs `grpcio-tools` (it carries protoc). The modules hold the serialized descriptors only and are
loaded by `mlirhlo/formats/proto/_pool.py`; the `.pyi` stubs are protoc's own.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from google.protobuf import descriptor_pb2
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path("mlirhlo/formats/proto")

MODULE = '''"""Generated from {source} by tools/generate_protos.py; do not edit."""

{imports}from mlirhlo.formats.proto._pool import load

globals().update(
    load(
{lines}
    )
)
'''


def bytes_literal(data: bytes, width: int = 24) -> str:
    """`data` as concatenated bytes literals of `width` bytes a line."""
    return "\n".join(" " * 8 + repr(data[i : i + width]) for i in range(0, len(data), width))


def generate() -> dict[Path, str]:
    """Relative path and text of every generated file."""
    sources = sorted((ROOT / FOLDER).glob("*.proto"))
    with tempfile.TemporaryDirectory() as temporary:
        descriptors = Path(temporary) / "descriptors.binpb"
        arguments = [
            "protoc",
            f"-I{ROOT}",
            f"-I{Path(protoc.__file__).parent / '_proto'}",  # google/protobuf/any.proto
            f"--descriptor_set_out={descriptors}",
            f"--pyi_out={temporary}",
            *(str(source) for source in sources),
        ]
        if protoc.main(arguments):
            sys.exit("generate_protos: protoc failed")
        files = descriptor_pb2.FileDescriptorSet.FromString(descriptors.read_bytes())
        result: dict[Path, str] = {}
        for file in files.file:
            stem = FOLDER / Path(file.name).stem
            imports = "".join(
                f"import {name.removesuffix('.proto').replace('/', '.')}_pb2  # noqa: F401\n"
                for name in file.dependency
                if name.startswith(str(FOLDER))
            )
            result[Path(f"{stem}_pb2.py")] = MODULE.format(
                source=Path(file.name).name,
                imports=imports,
                lines=bytes_literal(file.SerializeToString(deterministic=True)),
            )
            result[Path(f"{stem}_pb2.pyi")] = (Path(temporary) / f"{stem}_pb2.pyi").read_text()
    return result


def main() -> int:
    """Write the files, or compare them with `--check`."""
    parser = argparse.ArgumentParser(description="Renew the generated protobuf modules.")
    parser.add_argument("--check", action="store_true", help="fail if a file is out of date")
    check: bool = parser.parse_args().check
    stale = [
        path
        for path, text in generate().items()
        if not (ROOT / path).is_file() or (ROOT / path).read_text() != text
    ]
    if check:
        for path in stale:
            print(f"{path} is out of date; run tools/generate_protos.py", file=sys.stderr)
        return 1 if stale else 0
    for path, text in generate().items():
        (ROOT / path).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
