"""The timeline of a run: made before it, filled by it, read after it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlirhlo.diagnostics import error
from mlirhlo.formats.files import write_file
from mlirhlo.mosaic.timeline.channels import Channel
from mlirhlo.mosaic.timeline.clock import COPY, SIGNAL, STALL, CoreTime, Event
from mlirhlo.mosaic.timeline.cost import EUP, LOAD, MXU, STORE, VPU, XLU
from mlirhlo.mosaic.timeline.figures import Chip, chip_of

_SHOWN = (MXU, VPU, EUP, XLU, LOAD, STORE)


@dataclass(slots=True, eq=False)
class Timeline:
    """What the cores of a run did, in modelled cycles of a generation.

    A run with this object among its `Options` begins it anew. Raises `HloError` HLO0749 for a
    generation that is not modelled.
    """

    generation: str = "v5e"
    name: str = "kernel"
    cores: list[CoreTime] = field(default_factory=list[CoreTime])

    def __post_init__(self) -> None:
        chip_of(self.generation)

    @property
    def chip(self) -> Chip:
        """The modelled machine."""
        return chip_of(self.generation)

    def begin(self, name: str, devices: int, cores: int) -> list[CoreTime]:
        """The times of a new run's cores, a device's together. They share the HBM of their chip."""
        chip = self.chip
        share = chip.hbm_bytes * chip.hbm_share / cores
        self.name = name
        self.cores = [
            CoreTime(
                chip,
                device,
                core,
                Channel(share),
                Channel(chip.link_bytes),
                Channel(float(chip.onchip_bytes)),
            )
            for device in range(devices)
            for core in range(cores)
        ]
        return self.cores

    # What came out.

    @property
    def cycles(self) -> float:
        """Until the last core is done."""
        return max((core.now for core in self.cores), default=0.0)

    @property
    def seconds(self) -> float:
        """The same as time."""
        return self.cycles / self.chip.hertz

    @property
    def roofline(self) -> tuple[str, float]:
        """What bounds the kernel, and the cycles that it would take at best: of the core that
        computes or moves most, at the published peaks.
        """
        chip = self.chip
        peers = max(1, sum(core.device == 0 for core in self.cores))
        bounds = [
            bound
            for core in self.cores
            for bound in (
                ("matrix units", core.matrix_flops / (2 * chip.macs)),
                (
                    "vector units",
                    (core.flops - core.matrix_flops) / (chip.alus * 1024),
                ),
                (
                    "HBM",
                    (core.moved.get("in", 0) + core.moved.get("out", 0)) / (chip.hbm_bytes / peers),
                ),
                ("links", core.moved.get("remote", 0) / chip.link_bytes),
            )
        ]
        return max(bounds, key=lambda bound: bound[1], default=("nothing", 0.0))

    @property
    def title(self) -> str:
        """Kernel, generation, cycles and time, in a line."""
        return (
            f"{self.name} on {self.generation}, modelled: {self.cycles:.0f} cycles of "
            f"{self.chip.hertz / 1e9:g} GHz, {1e6 * self.seconds:.2f} us"
        )

    def summary(self) -> str:
        """Cycles of computing, copies and stalls of each core, bytes moved, share of the roofline."""
        total = max(self.cycles, 1e-9)
        what, best = self.roofline
        lines = [
            self.title,
            f"roofline: {what}, {best:.0f} cycles at best: {best / total:.0%} of it reached",
        ]
        for core in self.cores:
            title = f"device {core.device} core {core.core}: " if len(self.cores) > 1 else ""
            copying = covered(
                (event.begin, event.end) for event in core.events if event.kind == COPY
            )
            lines.append(
                f"{title}compute {core.computed:.0f} ({core.computed / total:.0%})  "
                f"stalled {core.stalled:.0f} ({core.stalled / total:.0%})  "
                f"copies under way {copying:.0f} ({copying / total:.0%})"
            )
            busy = [
                f"{unit} {core.units[unit] / total:.0%}"
                for unit in _SHOWN
                if core.units.get(unit, 0.0)
            ]
            moved = [
                f"{direction} {core.moved[direction]}"
                for direction in ("in", "out", "local", "remote")
                if core.moved.get(direction)
            ]
            lines.append(f"  bytes: {'  '.join(moved) or 'none'}   busy: {'  '.join(busy) or '-'}")
            lines.append(
                f"  operations: {core.flops:.4g} ({core.matrix_flops:.4g} of matrix units, "
                f"{core.transcendentals:.4g} transcendentals)"
            )
            for name, (count, cycles) in stalls_of(core.events)[:3]:
                lines.append(f"  stall: {cycles:.0f} cycles in {count}: {name}")
        return "\n".join(lines)

    def to_chrome_trace(self) -> dict[str, Any]:
        """The trace event format of chrome://tracing and Perfetto: microseconds, a process a core,
        a track for the core and one for each direction of copies.
        """
        micro = 1e6 / self.chip.hertz
        found: list[dict[str, Any]] = []
        for pid, core in enumerate(self.cores):
            name = f"device {core.device} core {core.core}"
            found.append(_named("process_name", pid, 0, name))
            tracks = lanes_of(core.events)
            for tid, (track, events) in enumerate(tracks):
                found.append(_named("thread_name", pid, tid, track))
                for event in events:
                    arguments: dict[str, Any] = {
                        "cycles": round(event.end - event.begin, 1),
                        "from cycle": round(event.begin, 1),
                    }
                    if event.step:
                        arguments["step"] = list(event.step)
                    if event.bytes:
                        arguments["bytes"] = event.bytes
                    if event.place:
                        arguments["source"] = event.place
                    entry: dict[str, Any] = {
                        "name": event.name,
                        "cat": event.kind,
                        "ph": "i" if event.kind == SIGNAL else "X",
                        "ts": event.begin * micro,
                        "pid": pid,
                        "tid": tid,
                        "args": arguments,
                    }
                    if event.kind == SIGNAL:
                        entry["s"] = "t"
                    else:
                        entry["dur"] = (event.end - event.begin) * micro
                    found.append(entry)
        return {
            "traceEvents": found,
            "displayTimeUnit": "ns",
            "otherData": {
                "kernel": self.name,
                "generation": self.generation,
                "modelled cycles": round(self.cycles, 1),
            },
        }

    def to_svg(self) -> str:
        """A picture; see `svg`."""
        from mlirhlo.mosaic.timeline.svg import render

        return render(self)

    def write(self, file: str) -> None:
        """Writes `FILE.json`, a Chrome trace, or `FILE.svg`.

        Raises `HloError` HLO0754 for other names, HLO0503 for a file that cannot be written.
        """
        kind = Path(file).suffix
        if kind not in (".json", ".svg"):
            raise error(
                "HLO0754",
                f"a timeline is written as .json or .svg, not to {file!r}",
                help="name it trace.json (for Perfetto or chrome://tracing) or trace.svg",
            )
        text = self.to_svg() if kind == ".svg" else json.dumps(self.to_chrome_trace())
        write_file(str(file), text.encode())


def covered(spans: Any) -> float:
    """How long at least one of the spans lasts."""
    total, reached = 0.0, 0.0
    for begin, end in sorted(spans):
        if end > reached:
            total += end - max(begin, reached)
            reached = end
    return total


def stalls_of(events: list[Event]) -> list[tuple[str, tuple[int, float]]]:
    """The waits that cost most, by what and where: how often, and how long together."""
    found: dict[str, tuple[int, float]] = {}
    for event in events:
        if event.kind == STALL:
            name = f"{event.name} at {event.place}" if event.place else event.name
            count, cycles = found.get(name, (0, 0.0))
            found[name] = (count + 1, cycles + event.end - event.begin)
    return sorted(found.items(), key=lambda item: -item[1][1])


def lanes_of(events: list[Event]) -> list[tuple[str, list[Event]]]:
    """Tracks: the core, then copies by direction, as many tracks as overlap."""
    found: list[tuple[str, list[Event]]] = [
        ("core", [event for event in events if event.kind != COPY])
    ]
    for direction, title in (
        ("in", "copies in"),
        ("out", "copies out"),
        ("local", "copies within"),
        ("remote", "copies to others"),
    ):
        tracks: list[list[Event]] = []
        for event in sorted(
            (one for one in events if one.kind == COPY and one.direction == direction),
            key=lambda one: one.begin,
        ):
            free = next((track for track in tracks if track[-1].end <= event.begin), None)
            if free is None:
                tracks.append([event])
            else:
                free.append(event)
        found += [
            (title if number == 0 else f"{title} {number + 1}", track)
            for number, track in enumerate(tracks)
        ]
    return found


def _named(what: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}
