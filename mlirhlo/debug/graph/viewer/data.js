// The module and its stages, out of the packed data of the page.

import { byId } from "./dom.js";

/** What the page carries, unpacked. */
export async function readData() {
  const binary = atob(byId("data").textContent.trim());
  const packed = Uint8Array.from(binary, (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

/** One instruction of one stage. */
class Instruction {
  constructor(record, fields) {
    fields.forEach((field, place) => {
      this[field] = record[place];
    });
    this.computation = null;
    this.inputs = []; // instructions, in operand order; control predecessors follow
    this.users = [];
    this.called = [];
    this.status = "same"; // or added, changed, removed, against the stage before
  }

  /** Whether it is written into its users rather than drawn. */
  get isMinor() {
    const isPart = this.opcode === "constant" || this.opcode === "get-tuple-element";
    return isPart && this.status !== "removed" && this.computation.root !== this;
  }

  /** Whether it calls something worth unfolding. */
  get unfolds() {
    return this.called.some((computation) => !computation.word);
  }
}

/** One computation of one stage. */
class Computation {
  constructor(name, isEntry, word) {
    this.name = name;
    this.isEntry = isEntry;
    this.word = word; // `add` when it only adds its two parameters
    this.nodes = [];
    this.root = null;
    this.callers = [];
  }
}

/** The module at one moment. */
export class Stage {
  constructor(data, place) {
    const { label, file, computations } = data.stages[place];
    this.label = label;
    this.file = file;
    this.computations = new Map();
    this.instructions = new Map();
    for (const number of computations) {
      const [name, isEntry, root, word, records] = data.computations[number];
      const computation = new Computation(name, isEntry === 1, word);
      for (const record of records) {
        const instruction = new Instruction(data.records[record], data.fields);
        instruction.computation = computation;
        computation.nodes.push(instruction);
        this.instructions.set(instruction.name, instruction);
      }
      computation.root = computation.nodes[root] ?? null;
      this.computations.set(name, computation);
    }
    this.entry = [...this.computations.values()].find((c) => c.isEntry) ?? [...this.computations.values()].at(-1);
    for (const instruction of this.instructions.values()) {
      this.connect(instruction);
    }
  }

  connect(instruction) {
    const names = [...instruction.operands, ...instruction.control];
    instruction.inputs = names.map((name) => this.instructions.get(name)).filter(Boolean);
    for (const input of new Set(instruction.inputs)) {
      input.users.push(instruction);
    }
    instruction.called = instruction.calls.map((name) => this.computations.get(name)).filter(Boolean);
    for (const computation of instruction.called) {
      computation.callers.push(instruction);
    }
  }

  /** Marks what the pass since `before` did; returns instructions by what happened to them. */
  compare(before) {
    const changes = { added: [], changed: [], removed: [] };
    for (const instruction of this.instructions.values()) {
      const earlier = before.instructions.get(instruction.name);
      instruction.earlier = earlier ?? null;
      if (!earlier) {
        instruction.status = "added";
      } else if (earlier.text !== instruction.text || earlier.computation.name !== instruction.computation.name) {
        instruction.status = "changed";
      }
      if (instruction.status !== "same") {
        changes[instruction.status].push(instruction);
      }
    }
    for (const [name, earlier] of before.instructions) {
      if (!this.instructions.has(name)) {
        changes.removed.push(this.ghost(earlier));
      }
    }
    return changes;
  }

  /** An instruction of the stage before, standing in this one as removed. */
  ghost(earlier) {
    const ghost = Object.assign(Object.create(Object.getPrototypeOf(earlier)), earlier);
    ghost.status = "removed";
    ghost.users = [];
    ghost.called = [];
    ghost.computation = this.computations.get(earlier.computation.name) ?? null;
    this.ghosts ??= new Map();
    this.ghosts.set(ghost.name, ghost);
    return ghost;
  }

  /** The instruction of that name, removed ones too. */
  named(name) {
    return this.instructions.get(name) ?? this.ghosts?.get(name) ?? null;
  }
}

/** All stages, each made when it is first looked at. */
export class Stages {
  constructor(data) {
    this.data = data;
    this.made = [];
    this.length = data.stages.length;
  }

  at(place) {
    if (!this.made[place]) {
      const stage = new Stage(this.data, place);
      // The stage before is made anew: what stands in it bears the marks of its own past.
      stage.changes = place ? stage.compare(new Stage(this.data, place - 1)) : null;
      this.made[place] = stage;
    }
    return this.made[place];
  }
}
