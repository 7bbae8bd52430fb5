"""Random modules of loops, branches and updates in place, as text; they end, whatever their inputs."""

from __future__ import annotations

import random

SIZE = 4
ARRAY = f"f32[{SIZE}]"


class Program:
    """One module; `text` is its HLO."""

    def __init__(self, seed: int, nested: bool = False) -> None:
        """`nested`: the arrays of a loop are a tuple in its state."""
        self.random = random.Random(seed)
        self.nested = nested
        self.computations: list[str] = []
        self.number = 0
        self.text = self.module()

    def name(self, stem: str) -> str:
        """A fresh name."""
        self.number += 1
        return f"{stem}.{self.number}"

    def module(self) -> str:
        """All of it."""
        pick = self.random
        count = pick.randint(1, 3)
        lines = [f"  p.{k} = {ARRAY} parameter({k})" for k in range(count)]
        lines.append("  zero = s32[] constant(0)")
        lines.append(f"  fixed = {ARRAY} constant({{1, 2, 3, 4}})")
        pool = [*(f"p.{k}" for k in range(count)), "fixed"]
        self.instructions(lines, pool, pick.randint(2, 5), 2)
        results = [pick.choice(pool) for _ in range(pick.randint(1, 4))]
        shapes = ", ".join([ARRAY] * len(results))
        lines.append(f"  ROOT out = ({shapes}) tuple({', '.join(results)})")
        header = f"HloModule random, entry_computation_layout={{({', '.join([ARRAY] * count)})->({shapes})}}"
        given = pick.sample(range(count), pick.randint(0, min(count, len(results))))
        if given:
            places = pick.sample(range(len(results)), len(given))
            pairs = ", ".join(
                f"{{{o}}}: ({p}, {{}}, may-alias)" for o, p in zip(places, given, strict=True)
            )
            header += f", input_output_alias={{ {pairs} }}"
        entry = "\n".join(["ENTRY main {", *lines, "}"])
        return "\n\n".join([header, *self.computations, entry])

    def instructions(self, lines: list[str], pool: list[str], count: int, depth: int) -> None:
        """Adds instructions that read and extend the pool of arrays."""
        pick = self.random
        for _ in range(count):
            a, b = pick.choice(pool), pick.choice(pool)
            made = self.name("v")
            kind = pick.choice(
                ["add", "negate", "reverse", "update", "copy", "while", "conditional"]
            )
            if kind == "add":
                lines.append(f"  {made} = {ARRAY} add({a}, {b})")
            elif kind == "reverse":
                lines.append(f"  {made} = {ARRAY} reverse({a}), dimensions={{0}}")
            elif kind == "update":
                part = self.name("part")
                lines.append(f"  {part} = f32[1] slice({b}), slice={{[1:2]}}")
                lines.append(f"  {made} = {ARRAY} dynamic-update-slice({a}, {part}, zero)")
            elif kind == "while" and depth:
                self.loop(lines, pool, depth)
                continue
            elif kind == "conditional" and depth:
                self.conditional(lines, pool, depth)
                continue
            else:
                lines.append(f"  {made} = {ARRAY} {kind if kind == 'copy' else 'negate'}({a})")
            pool.append(made)

    def loop(self, lines: list[str], pool: list[str], depth: int) -> None:
        """A loop over a counter and some arrays."""
        pick = self.random
        count = pick.randint(1, 3)
        arrays = ", ".join([ARRAY] * count)
        state = f"(s32[], ({arrays}))" if self.nested else f"(s32[], {arrays})"
        body, condition, name = self.name("body"), self.name("condition"), self.name("loop")
        inside = [
            f"  s = {state} parameter(0)",
            "  i = s32[] get-tuple-element(s), index=0",
            "  zero = s32[] constant(0)",
            "  one = s32[] constant(1)",
            *self.elements(state, "s", [f"e.{k}" for k in range(count)]),
            "  next = s32[] add(i, one)",
        ]
        own = [f"e.{k}" for k in range(count)]
        self.instructions(inside, own, pick.randint(0, 4), depth - 1)
        following = [pick.choice(own) for _ in range(count)]
        inside += self.state("ROOT r", state, "next", following)
        self.computations.append("\n".join([f"{body} {{", *inside, "}"]))
        self.computations.append(
            f"{condition} {{\n  s = {state} parameter(0)\n"
            f"  i = s32[] get-tuple-element(s), index=0\n  n = s32[] constant({pick.randint(0, 3)})\n"
            "  ROOT c = pred[] compare(i, n), direction=LT\n}"
        )
        init = self.name("init")
        lines += self.state(init, state, "zero", pick.choices(pool, k=count))
        lines.append(f"  {name} = {state} while({init}), condition={condition}, body={body}")
        results = [self.name("v") for _ in range(count)]
        lines += self.elements(state, name, results)
        pool += results

    def state(self, name: str, shape: str, counter: str, arrays: list[str]) -> list[str]:
        """The lines that build a loop's state."""
        whole = ", ".join(arrays)
        if not self.nested:
            return [f"  {name} = {shape} tuple({counter}, {whole})"]
        inner = self.name("inner")
        return [
            f"  {inner} = {shape[len('(s32[], ') : -1]} tuple({whole})",
            f"  {name} = {shape} tuple({counter}, {inner})",
        ]

    def elements(self, shape: str, state: str, names: list[str]) -> list[str]:
        """The lines that read the arrays of a loop's state."""
        lines: list[str] = []
        source, first = state, 1
        if self.nested:
            source, first = self.name("inner"), 0
            lines.append(
                f"  {source} = {shape[len('(s32[], ') : -1]} get-tuple-element({state}), index=1"
            )
        read = f"get-tuple-element({source}), index="
        return lines + [f"  {n} = {ARRAY} {read}{first + k}" for k, n in enumerate(names)]

    def conditional(self, lines: list[str], pool: list[str], depth: int) -> None:
        """A choice between two ways to make some arrays."""
        pick = self.random
        count = pick.randint(1, 2)
        results = "(" + ", ".join([ARRAY] * count) + ")"
        branches: list[str] = []
        operands: list[str] = []
        for _ in range(2):
            width = pick.randint(1, 2)
            shape = "(" + ", ".join([ARRAY] * width) + ")"
            branch, operand = self.name("branch"), self.name("operand")
            inside = [f"  s = {shape} parameter(0)", "  zero = s32[] constant(0)"]
            inside += [f"  e.{k} = {ARRAY} get-tuple-element(s), index={k}" for k in range(width)]
            own = [f"e.{k}" for k in range(width)]
            self.instructions(inside, own, pick.randint(0, 2), depth - 1)
            inside.append(f"  ROOT r = {results} tuple({', '.join(pick.choices(own, k=count))})")
            self.computations.append("\n".join([f"{branch} {{", *inside, "}"]))
            lines.append(f"  {operand} = {shape} tuple({', '.join(pick.choices(pool, k=width))})")
            branches.append(branch)
            operands.append(operand)
        first, choice, name = self.name("first"), self.name("choice"), self.name("chosen")
        least, limit = self.name("least"), self.name("limit")
        lines.append(f"  {first} = f32[1] slice({pick.choice(pool)}), slice={{[0:1]}}")
        lines.append(f"  {least} = f32[] reshape({first})")
        lines.append(f"  {limit} = f32[] constant(0)")
        lines.append(f"  {choice} = pred[] compare({least}, {limit}), direction=GT")
        lines.append(
            f"  {name} = {results} conditional({choice}, {', '.join(operands)}), "
            f"true_computation={branches[0]}, false_computation={branches[1]}"
        )
        for k in range(count):
            made = self.name("v")
            lines.append(f"  {made} = {ARRAY} get-tuple-element({name}), index={k}")
            pool.append(made)
