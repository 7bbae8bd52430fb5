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
    this.status = "same"; // or added, changed, removed, renamed, against the stage before
    this.slot = null; // of the buffers of the last stage
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

const NAME = /%[^\s(){},=]+/g;

/** What an instruction says with its own name left out and operands by their names in `names`, where they have one. */
function meaning(instruction, names) {
  const own = `%${instruction.name}`;
  const text = instruction.text.replace(NAME, (name) => (name === own ? "%" : `%${names.get(name.slice(1)) ?? name.slice(1)}`));
  return `${instruction.computation.name}\n${text}`;
}

/** What a pass did to an instruction that knows what it was; `names` are the earlier names. */
function statusOf(instruction, names) {
  const { earlier } = instruction;
  if (!earlier) {
    return "added";
  }
  const isRenamed = earlier.name !== instruction.name;
  if (!isRenamed && earlier.text === instruction.text && earlier.computation.name === instruction.computation.name) {
    return "same";
  }
  // An operand's new name is no change of the one who reads it.
  if (meaning(instruction, names) !== meaning(earlier, new Map())) {
    return "changed";
  }
  return isRenamed ? "renamed" : "same";
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

  /** Marks what the pass since `before` did; returns instructions by what happened to them. */
  compare(before) {
    const changes = { added: [], changed: [], removed: [], renamed: [] };
    const earlier = this.match(before);
    const names = new Map([...earlier].map(([instruction, old]) => [instruction.name, old.name]));
    for (const instruction of this.instructions.values()) {
      instruction.earlier = earlier.get(instruction) ?? null;
      instruction.status = statusOf(instruction, names);
      changes[instruction.status]?.push(instruction);
    }
    const kept = new Set(earlier.values());
    for (const old of before.instructions.values()) {
      if (!kept.has(old)) {
        changes.removed.push(this.ghost(old));
      }
    }
    return changes;
  }

  /**
   * Which instruction of the stage before each of this one was: the one of its name; else one that is gone by
   * its name, stood in a computation of the same name and says the same of the same operands.
   */
  match(before) {
    const earlier = new Map();
    const names = new Map();
    const gone = new Map();
    for (const [name, old] of before.instructions) {
      if (!this.instructions.has(name)) {
        const key = meaning(old, new Map());
        gone.set(key, [...(gone.get(key) ?? []), old]);
      }
    }
    for (const instruction of this.instructions.values()) {
      const named = before.instructions.get(instruction.name);
      const old = named ?? (gone.size ? gone.get(meaning(instruction, names))?.shift() : null);
      if (old) {
        earlier.set(instruction, old);
        names.set(instruction.name, old.name);
      }
    }
    return earlier;
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
