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
    this.status = "same"; // or added, changed, moved, removed, renamed, against the stage before
    this.earlier = null; // what it was in the stage before
    this.slot = null; // of the buffers of the last stage
  }

  /** Whether it is written into its users rather than drawn. */
  get isMinor() {
    const isPart = this.opcode === "constant" || this.opcode === "get-tuple-element";
    return isPart && this.status !== "removed" && this.computation.root !== this;
  }

  /** Whether most of the work is in instructions like it, or in what it calls. */
  get isAnchor() {
    const computes = this.opcode !== "custom-call" || this.flops > 0 || this.unknown > 0;
    return (ANCHORS.has(this.opcode) && computes) || this.called.some((computation) => computation.hasAnchors);
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
    this.hasAnchors = false;
  }
}

/** Opcodes that a group is named after: what most of the work is in. */
const ANCHORS = new Set(
  ("dot ragged-dot scaled-dot convolution reduce reduce-window select-and-scatter scatter gather sort fft cholesky triangular-solve scan topk" +
    " while conditional custom-call rng rng-bit-generator batch-norm-training batch-norm-inference batch-norm-grad all-gather all-reduce all-to-all" +
    " collective-permute reduce-scatter all-gather-start all-reduce-start collective-permute-start infeed outfeed send recv async-start").split(" "),
);

/** The module at one stage. */
export class Stage {
  constructor(data, place) {
    const { label, file, computations } = data.stages[place];
    this.label = label;
    this.file = file;
    this.computations = new Map();
    this.instructions = new Map();
    this.differences = data.stages[place].differences.map(([kind, old, now]) => [data.kinds[kind], old, now]);
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
    for (const computation of this.computations.values()) { // callees first
      computation.hasAnchors = computation.nodes.some((instruction) => instruction.isAnchor);
    }
    this.slots = place === data.stages.length - 1 ? data.memory.slots : [];
    if (this.slots.length) {
      Object.entries(data.memory.of).forEach(([name, slot]) => { this.instructions.get(name).slot = slot; });
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

  /** Marks what the pass since `before` did, as the page says; returns instructions by what happened to them. */
  compare(before) {
    const changes = { added: [], changed: [], moved: [], removed: [], renamed: [] };
    const [olds, nows] = [before, this].map((stage) => [...stage.computations.values()].flatMap((computation) => computation.nodes));
    for (const instruction of nows) {
      instruction.earlier = before.instructions.get(instruction.name) ?? null;
    }
    for (const [kind, old, now] of this.differences) {
      if (kind === "removed") {
        changes.removed.push(this.ghost(olds[old]));
      } else {
        nows[now].status = kind;
        nows[now].earlier = old < 0 ? null : olds[old];
        changes[kind].push(nows[now]);
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

/** How many instructions a stage has changed, by what happened to them, without making it. */
export function countsOf(data, place) {
  const counts = { added: 0, removed: 0, changed: 0, moved: 0, renamed: 0 };
  data.stages[place].differences.forEach(([kind]) => { counts[data.kinds[kind]] += 1; });
  return counts;
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
