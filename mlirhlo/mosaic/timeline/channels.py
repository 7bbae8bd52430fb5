"""Copies on their way: each waits a latency, then all that flow share their channel's bandwidth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf


@dataclass(slots=True, eq=False)
class Transfer:
    """A copy, in cycles and bytes."""

    flows: float
    """When its first byte moves."""
    left: float
    """Bytes that have not moved yet, as far as the channel has been followed."""
    channel: Channel
    end: float = inf

    def finish(self) -> float:
        """When the last byte is there, if no later copy is started before."""
        self.channel.follow(self)
        return self.end


@dataclass(slots=True)
class Channel:
    """What a copy's bytes go through: a core's part of HBM, a link, the wires of a chip."""

    bytes_per_cycle: float
    now: float = 0.0
    active: list[Transfer] = field(default_factory=list[Transfer])

    def start(self, at: float, latency: float, size: int) -> Transfer:
        """A copy that is started at a time."""
        self._run(at, lambda: False)
        transfer = Transfer(at + latency, float(size), self)
        if size:
            self.active.append(transfer)
        else:
            transfer.end = transfer.flows
        return transfer

    def follow(self, transfer: Transfer) -> None:
        """Lets time pass until a copy is done."""
        self._run(inf, lambda: transfer.end < inf)

    def _run(self, until: float, is_enough: Callable[[], bool]) -> None:
        """Lets bytes flow until a time, or until it is enough."""
        while self.active and self.now < until and not is_enough():
            flowing = [one for one in self.active if one.flows <= self.now]
            waiting = [one.flows for one in self.active if one.flows > self.now]
            step = min(until, *waiting) if waiting else until
            if flowing:
                rate = self.bytes_per_cycle / len(flowing)
                least = min(one.left for one in flowing)
                step = min(step, self.now + least / rate)
                for one in flowing:
                    one.left -= rate * (step - self.now)
                    if one.left <= 1e-6:
                        one.end = step
                self.active = [one for one in self.active if one.end == inf]
            self.now = step
        if self.now < until < inf:
            self.now = until
