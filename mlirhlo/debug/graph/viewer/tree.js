// What a graph is folded into. A computation of many instructions becomes groups: by the scopes of
// op_name where there are any, else runs of neighbours in stored order, which never form a cycle.

/** More than that at one level is grouped. */
const CROWD = 110;
const RUNS = 36;
const FEW = 12;
const STUBS = 12;

/** A place in the picture: an instruction, a group of some, or a producer outside of the group. */
export class Item {
  constructor(key, kind, title, members) {
    this.key = key; // stable over stages, so that what is open stays open
    this.kind = kind; // leaf, scope, run, computation, stub
    this.title = title;
    this.members = members; // instructions that it stands for
    this.instruction = kind === "leaf" || kind === "stub" ? members[0] : null;
    this.content = null;
  }

  get unfolds() {
    return this.kind === "leaf" ? this.instruction.unfolds : this.kind !== "stub";
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
  itemsOf(computation, key) {
    return this.divided(this.instructionsOf(computation), key, true);
  }

  divided(instructions, key, byScope) {
    const leaf = (instruction) => new Item(`${key}/${instruction.name}`, "leaf", instruction.name, [instruction]);
    if (instructions.length <= CROWD) {
      return instructions.map(leaf);
    }
    const items = byScope ? this.withoutParameters(instructions, key, leaf) : instructions.map(leaf);
    if (items.length <= CROWD) {
      return items;
    }
    const size = Math.max(24, Math.ceil(items.length / RUNS));
    const runs = [];
    for (let start = 0; start < items.length; start += size) {
      const members = items.slice(start, start + size).flatMap((item) => item.members);
      const [first, last] = [members[0].name, members.at(-1).name];
      const run = new Item(`${key}/~${runs.length}`, "run", `${first} … ${last}`, members);
      run.content = items.slice(start, start + size);
      runs.push(run);
    }
    return runs;
  }

  /** By scopes; parameters, which have none, are one group of their own when they are many. */
  withoutParameters(instructions, key, leaf) {
    const parameters = instructions.filter((instruction) => instruction.opcode === "parameter");
    if (parameters.length <= FEW) {
      return this.scoped(instructions, key, leaf);
    }
    const group = new Item(`${key}/:`, "scope", "parameters", parameters);
    group.inside = () => this.divided(parameters, group.key, false);
    return [group, ...this.scoped(instructions.filter((instruction) => instruction.opcode !== "parameter"), key, leaf)];
  }

  scoped(instructions, key, leaf) {
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
    return this.level(instructions, paths, depth, key, leaf);
  }

  level(instructions, paths, depth, key, leaf) {
    const groups = new Map();
    for (const instruction of instructions) {
      const part = paths.get(instruction)[depth];
      const name = part === undefined ? instruction : part;
      groups.has(name) ? groups.get(name).push(instruction) : groups.set(name, [instruction]);
    }
    const items = [];
    for (const [name, members] of groups) {
      if (typeof name !== "string" || members.length < 3) {
        items.push(...members.map(leaf));
        continue;
      }
      const scope = new Item(`${key}/:${name}`, "scope", name, members);
      scope.inside = () => {
        const found = this.level(members, paths, depth + 1, scope.key, leaf);
        return found.length > CROWD ? this.divided(members, scope.key, false) : found;
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
    if (item.kind === "scope") {
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

  /** Producers outside of a group that its members read: so many as there is room for. */
  stubs(item) {
    if (item.kind !== "scope" && item.kind !== "run") {
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
    const most = [...found.keys()].slice(0, STUBS);
    const stubs = most.map((input) => new Item(`${item.key}/<${input.name}`, "stub", input.name, [input]));
    item.stubsOmitted = found.size - most.length;
    return stubs;
  }

  /** Operands as drawn: through tuple elements, without constants. */
  drawnInputs(instruction) {
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
