// What a graph is folded into. A computation of many instructions becomes groups: by the scopes of
// op_name where there are any, else by dataflow.

import { cellsOf, stretchesOf, titleOf } from "./groups.js";

/** More than that at one level is grouped, unless a level says less. */
const CROWD = 80;
/** The same within a group. */
const INSIDE = 32;
const FEW = 12;
const STUBS = 6;

/** A place in the picture: an instruction, a group of some, or a producer outside of the group. */
export class Item {
  constructor(key, kind, title, members) {
    this.key = key; // stable over stages, so that what is open stays open
    this.kind = kind; // leaf, scope, flow, computation, stub
    this.name = title;
    this.members = members; // instructions that it stands for
    this.instruction = kind === "leaf" || (kind === "stub" && members.length === 1) ? members[0] : null;
    this.content = null;
    this.words = null;
    this.isParameters = false;
  }

  get title() {
    return this.name || this.purpose;
  }

  get unfolds() {
    return this.kind === "leaf" ? this.instruction.unfolds : this.kind !== "stub";
  }

  /** What it computes, in a few words. */
  get purpose() {
    this.words ??= titleOf(this.members);
    return this.words;
  }

  /** How many instructions it stands for, those of called computations left out. */
  get count() {
    return this.members.length;
  }
}

/** Makes items; holds which of them are open. */
export class Tree {
  constructor() {
    this.stage = null;
    this.open = new Set();
    this.isDetailed = false;
    this.showsGhosts = true;
    this.limit = CROWD; // of items at the first level
    // What depends on the stage and on what is shown of it:
    this.cells = new Map(); // by key
    this.scopes = new Map(); // by key
    this.drawn = new Map(); // operands, by instruction
  }

  /** Forgets what depends on the stage and on what is shown of it. */
  reset(stage) {
    this.stage = stage;
    [this.cells, this.scopes, this.drawn].forEach((known) => known.clear());
  }

  isShown(instruction) {
    return this.isDetailed || !instruction.isMinor;
  }

  /** The drawn instructions of a computation, with what the last pass removed from it. */
  instructionsOf(computation) {
    const nodes = computation.nodes.filter((instruction) => this.isShown(instruction));
    if (!this.showsGhosts || !this.stage.changes) {
      return nodes;
    }
    const ghosts = this.stage.changes.removed.filter(
      (ghost) => ghost.computation === computation && (this.isDetailed || !(ghost.opcode === "constant" || ghost.opcode === "get-tuple-element")),
    );
    return [...nodes, ...ghosts];
  }

  /** What a whole computation is at its first level. */
  itemsOf(computation, key, limit = CROWD) {
    const instructions = this.instructionsOf(computation);
    if (instructions.length <= limit) {
      return instructions.map((instruction) => leaf(key, instruction));
    }
    const [parameters, others] = this.withoutParameters(instructions, key, limit);
    const items = this.scopes.get(key) ?? this.scoped(others, key);
    this.scopes.set(key, items);
    return [...parameters, ...this.folded(items, others, key, limit - parameters.length)];
  }

  /** At most about `most` of `items`, which stand for `instructions`: stretches of scopes, or groups by dataflow. */
  folded(items, instructions, key, most) {
    if (items.length <= most) {
      return items;
    }
    return items.length <= instructions.length / 4 ? this.stretches(items, key, most) : this.flows(instructions, key, most);
  }

  /** Parameters, which have no scope and no operands, are one group of their own when they are many. */
  withoutParameters(instructions, key, limit) {
    const parameters = instructions.filter((instruction) => instruction.opcode === "parameter");
    const others = instructions.filter((instruction) => instruction.opcode !== "parameter");
    if (parameters.length <= Math.min(FEW, limit / 3) || !others.length) {
      return [parameters.map((parameter) => leaf(key, parameter)), others];
    }
    const group = new Item(`${key}/:`, "scope", "parameters", parameters);
    group.isParameters = true;
    group.inside = () => this.flows(parameters, group.key, CROWD);
    return [[group], others];
  }

  /** Instructions as at most about `most` items, by dataflow. */
  flows(instructions, key, most = INSIDE) {
    if (instructions.length <= most) {
      return instructions.map((instruction) => leaf(key, instruction));
    }
    const inputsOf = (instruction) => this.drawnInputs(instruction);
    const cells = this.cells.get(key) ?? cellsOf(instructions, inputsOf);
    this.cells.set(key, cells);
    const units = cells.length > 1 ? cells : cells[0].map((instruction) => [instruction]);
    const groups = units.length <= most && cells.length > 1 ? units : stretchesOf(units, Math.max(2, most), inputsOf);
    return groups.flatMap((members) => (members.length < 3 && groups.length < most / 2 ? members.map((member) => leaf(key, member)) : [this.flow(members, key)]));
  }

  flow(members, key) {
    if (members.length === 1) {
      return leaf(key, members[0]);
    }
    const named = members.find((member) => member.isAnchor) ?? members[0];
    const group = new Item(`${key}/~${named.name}`, "flow", "", members);
    group.inside = () => this.flows(members, group.key);
    return group;
  }

  /** Items as at most about `most` stretches of neighbours. */
  stretches(items, key, most) {
    const owner = new Map(items.flatMap((item) => item.members.map((member) => [member, item])));
    const found = stretchesOf(items.map((item) => item.members), Math.max(2, most), (instruction) => this.drawnInputs(instruction));
    return found.map((members) => {
      const inside = [...new Set(members.map((member) => owner.get(member)))];
      if (inside.length === 1) {
        return inside[0];
      }
      const [first, last] = [inside[0].title, inside.at(-1).title];
      const group = new Item(`${key}/=${first}`, "flow", `${first} … ${last}`, members);
      group.inside = () => this.folded(inside, members, group.key, INSIDE);
      return group;
    });
  }

  scoped(instructions, key) {
    const paths = new Map();
    for (const instruction of instructions) {
      paths.set(instruction, instruction.opName.split("/").slice(0, -1));
    }
    // What all of them share says nothing.
    const named = instructions.filter((instruction) => instruction.opName);
    let depth = 0;
    for (;;) {
      const parts = new Set(named.map((instruction) => paths.get(instruction)[depth]));
      if (parts.size !== 1 || parts.has(undefined)) {
        break;
      }
      depth += 1;
    }
    return this.level(instructions, paths, depth, key);
  }

  level(instructions, paths, depth, key) {
    const groups = new Map();
    for (const instruction of instructions) {
      const part = paths.get(instruction)[depth];
      const name = part === undefined ? instruction : part;
      groups.has(name) ? groups.get(name).push(instruction) : groups.set(name, [instruction]);
    }
    const items = [];
    for (const [name, members] of groups) {
      if (typeof name !== "string" || members.length < 3) {
        items.push(...members.map((member) => leaf(key, member)));
        continue;
      }
      const scope = new Item(`${key}/:${name}`, "scope", name, members);
      scope.inside = () => {
        return this.folded(this.level(members, paths, depth + 1, scope.key), members, scope.key, INSIDE);
      };
      items.push(scope);
    }
    return items;
  }

  /** What is inside of an open item; empty when it cannot be opened. */
  inside(item) {
    if (item.content) {
      return item.content;
    }
    if (item.inside) {
      item.content = item.inside();
    } else if (item.kind === "computation") {
      item.content = this.itemsOf(item.computation, item.key);
    } else if (item.kind === "leaf") {
      const called = item.instruction.called.filter((computation) => !computation.word);
      item.content =
        called.length === 1
          ? this.itemsOf(called[0], `${item.key}/`)
          : called.map((computation, place) => this.computationItem(computation, item.key, place));
    }
    return item.content ?? [];
  }

  computationItem(computation, key, place) {
    const item = new Item(`${key}//${place}`, "computation", computation.name, [...computation.nodes]);
    item.computation = computation;
    return item;
  }

  /** Producers outside of a group that its members read, fewer than `boxes`: the rest are one. */
  stubs(item, boxes) {
    if (!item.inside) {
      return [];
    }
    const within = new Set(item.members);
    const found = new Map();
    for (const member of item.members) {
      for (const input of this.drawnInputs(member)) {
        if (!within.has(input) && input.computation === member.computation) {
          found.set(input, (found.get(input) ?? 0) + 1);
        }
      }
    }
    const inputs = [...found.keys()].sort((a, b) => found.get(b) - found.get(a));
    const most = Math.max(1, Math.min(STUBS, Math.floor(boxes / 3)));
    const shown = inputs.length <= most ? inputs : inputs.slice(0, most - 1);
    const stubs = shown.map((input) => new Item(`${item.key}/<${input.name}`, "stub", input.name, [input]));
    const rest = inputs.slice(shown.length);
    return rest.length ? [...stubs, new Item(`${item.key}/<`, "stub", `${rest.length} ${shown.length ? "others" : "values"}`, rest)] : stubs;
  }

  /** Operands as drawn: through tuple elements, without constants. */
  drawnInputs(instruction) {
    let found = this.drawn.get(instruction);
    if (!found) {
      found = this.inputsDrawn(instruction);
      this.drawn.set(instruction, found);
    }
    return found;
  }

  inputsDrawn(instruction) {
    let { inputs } = instruction;
    if (this.showsGhosts && this.stage.ghosts) {
      const isGhost = instruction.status === "removed";
      const names = isGhost ? instruction.operands : (instruction.earlier?.operands ?? []);
      const others = names.map((name) => (isGhost ? this.stage.named(name) : this.stage.ghosts.get(name)));
      inputs = [...(isGhost ? [] : inputs), ...others.filter(Boolean)];
    }
    if (this.isDetailed) {
      return inputs;
    }
    const drawn = [];
    for (let input of inputs) {
      while (input && input.isMinor && input.opcode === "get-tuple-element") {
        [input] = input.inputs;
      }
      if (input && !input.isMinor) {
        drawn.push(input);
      }
    }
    return drawn;
  }

  toggle(key, isOpen = !this.open.has(key)) {
    isOpen ? this.open.add(key) : this.open.delete(key);
    if (!isOpen) {
      for (const other of this.open) {
        if (other.startsWith(`${key}/`)) {
          this.open.delete(other);
        }
      }
    }
  }
}

function leaf(key, instruction) {
  return new Item(`${key}/${instruction.name}`, "leaf", instruction.name, [instruction]);
}
