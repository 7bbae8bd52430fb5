// Groups by dataflow, for computations without scopes: what hangs together between products, convolutions and
// reductions is a cell; many cells become stretches, cut where the fewest values cross. What a group computes names it.

const ELEMENTARY = new Set("exponential exponential-minus-one log log-plus-one logistic tanh tan sine cosine erf power sqrt rsqrt cbrt atan2".split(" "));
const MOVING = new Set("parameter constant tuple get-tuple-element reshape broadcast transpose bitcast copy convert slice iota concatenate pad dynamic-slice dynamic-update-slice reverse copy-start copy-done bitcast-convert opt-barrier".split(" "));
const REDUCTIONS = { add: "sum", multiply: "product", max: "max", min: "min", and: "all", or: "any" };
/** Characters of a title; on a telephone two of them are beside each other. */
const LONGEST_TITLE = innerWidth < 600 ? 24 : 38;
/** What calls of libraries compute, by their target. */
const LIBRARIES = [[/^__cudnn\$conv|^__onednn\$convolution/, "convolution"], [/^__cublas\$(gemm|lt\$matmul)|^__onednn\$matmul/, "dot"], [/^__onednn\$softmax/, "softmax"]];
/** Instructions that are looked at to name a group. */
const MOST_NAMED = 20000;

/** The instructions, operands before users; in stored order wherever that is so. */
function operandsFirst(instructions, inputsOf) {
  const state = new Map(instructions.map((instruction) => [instruction, 0]));
  const ordered = [];
  for (const start of instructions) {
    const stack = [start];
    while (stack.length) {
      const here = stack.at(-1);
      const waiting = state.get(here) ? [] : inputsOf(here).filter((input) => state.get(input) === 0 && input !== here);
      if (state.get(here) === 2) {
        stack.pop();
      } else if (waiting.length) {
        state.set(here, 1);
        stack.push(...waiting.reverse());
      } else {
        state.set(here, 2);
        ordered.push(here);
        stack.pop();
      }
    }
  }
  return ordered;
}

/**
 * Cells: each anchor with what follows from it and what only prepares it. Lists of instructions, so ordered that
 * values only go on to later ones.
 */
export function cellsOf(instructions, inputsOf) {
  const ordered = operandsFirst(instructions, inputsOf);
  const cell = new Map();
  let count = 0;
  for (const instruction of ordered) {
    const known = inputsOf(instruction).map((input) => cell.get(input)).filter((number) => number !== undefined);
    if (instruction.isAnchor) {
      cell.set(instruction, count);
      count += 1;
    } else if (known.length) {
      cell.set(instruction, known.reduce((a, b) => Math.max(a, b)));
    }
  }
  // What nothing leads to belongs to its first user.
  const first = new Map();
  for (const instruction of [...ordered].reverse()) {
    const number = cell.get(instruction) ?? first.get(instruction) ?? Math.max(0, count - 1);
    cell.set(instruction, number);
    for (const input of inputsOf(instruction)) {
      first.set(input, Math.min(number, first.get(input) ?? Infinity));
    }
  }
  const cells = Array.from({ length: Math.max(1, count) }, () => []);
  ordered.forEach((instruction) => cells[cell.get(instruction)].push(instruction));
  return cells.filter((members) => members.length);
}

/** At most `most` stretches of `units` (lists of instructions), cut where few values cross for where it is. */
export function stretchesOf(units, most, inputsOf) {
  const place = new Map();
  units.forEach((members, number) => members.forEach((instruction) => place.set(instruction, number)));
  const last = new Map();
  for (const members of units) {
    for (const instruction of members) {
      inputsOf(instruction).forEach((input) => place.has(input) && last.set(input, Math.max(place.get(instruction), last.get(input) ?? 0)));
    }
  }
  const starts = new Array(units.length + 1).fill(0);
  for (const [value, end] of last) {
    if (value.opcode !== "parameter" && end > place.get(value)) {
      starts[place.get(value)] += 1;
      starts[end] -= 1;
    }
  }
  let [crossing, weight] = [0, 0];
  const crossings = starts.map((change) => (crossing += change)); // of values between unit and the next
  const weights = units.map((members) => (weight += members.length));
  const size = (weight / most) * 1.34;
  const stretches = [];
  for (let start = 0; start < units.length;) {
    const end = cut(start, start ? weights[start - 1] : 0, size, weights, crossings);
    stretches.push(units.slice(start, end).flat());
    start = end;
  }
  return stretches;
}

/** The end of a stretch of about `size` instructions that starts at unit `start`. */
function cut(start, before, size, weights, crossings) {
  if (weights.at(-1) - before <= size * 1.1) {
    return weights.length;
  }
  const end = weights.length - 2; // something is left for the next
  let least = start;
  while (least < end && weights[least] - before < size * 0.75) {
    least += 1;
  }
  let most = least;
  while (most < end && weights[most + 1] - before <= size * 1.5) {
    most += 1;
  }
  // Against the line between the ends of the window: in a forward pass ever more values stay for later.
  const slope = (crossings[most] - crossings[least]) / Math.max(1, most - least);
  let [best, score] = [least, Infinity];
  for (let at = least; at <= most; at += 1) {
    const here = crossings[at] - crossings[least] - slope * (at - least) + Math.abs(weights[at] - before - size) / (size * 10);
    [best, score] = here < score ? [at, here] : [best, score];
  }
  return Math.max(best, start) + 1;
}

function libraryWord(target) {
  return LIBRARIES.find(([pattern]) => pattern.test(target))?.[1] ?? target;
}

/** Counts of the words that say what instructions compute, with those of the computations they call. */
function wordsOf(members) {
  const words = new Map();
  const open = [...members];
  const seen = new Set();
  for (let at = 0; at < Math.min(open.length, MOST_NAMED); at += 1) {
    const instruction = open[at];
    const { opcode } = instruction;
    for (const computation of instruction.called) {
      if (!computation.word && !seen.has(computation) && opcode !== "reduce") {
        seen.add(computation);
        open.push(...computation.nodes);
      }
    }
    const word = opcode === "reduce" || opcode === "reduce-window" ? (REDUCTIONS[instruction.called[0]?.word] ?? opcode)
      : opcode === "custom-call" ? libraryWord(instruction.note) : opcode === "fusion" || opcode === "call" ? "" : opcode;
    if (word && (opcode !== "custom-call" || instruction.isAnchor)) {
      const entry = words.get(word) ?? { word, count: 0, weight: weightOf(instruction, word) };
      entry.count += 1;
      words.set(word, entry);
    }
  }
  return words;
}

/** 4 for products, 3 for what else most work is in, 2 for elementary functions, 1 for arithmetic, 0 for what moves data. */
function weightOf(instruction, word) {
  const { opcode } = instruction;
  if (instruction.isAnchor && opcode !== "fusion" && opcode !== "call") {
    return /dot$|^convolution$/.test(word) ? 4 : 3;
  }
  return ELEMENTARY.has(opcode) ? 2 : MOVING.has(opcode) || opcode === "fusion" || opcode === "call" ? 0 : 1;
}

/** What instructions compute, in a few words: `2 dot · softmax`. */
export function titleOf(members) {
  const words = wordsOf(members);
  const has = (...names) => names.every((name) => words.has(name));
  const entries = new Map(words);
  const say = (word, ...parts) => {
    const count = Math.min(...parts.map((part) => words.get(part).count));
    parts.forEach((part) => entries.delete(part));
    entries.set(word, { word, count, weight: 2.5 });
  };
  if (has("exponential", "sum", "divide")) {
    say("softmax", "exponential", "sum", "divide");
    entries.delete("max");
  }
  if (has("rsqrt", "sum", "multiply")) {
    say("normalise", "rsqrt", "sum", "multiply");
  }
  const ranked = [...entries.values()].sort((a, b) => b.weight - a.weight || b.count - a.count);
  const heaviest = ranked[0]?.weight ?? 0;
  const parts = [];
  for (const { word, count, weight } of ranked) {
    const text = count > 1 && weight >= 2 ? `${count} ${word}` : word;
    const isEnough = weight === 0 ? heaviest > 0 || parts.length > 2 : weight === 1 && parts.length > 2;
    if (!isEnough && (!parts.length || [...parts, text].join(" · ").length <= LONGEST_TITLE)) {
      parts.push(text);
    }
  }
  return parts.join(" · ");
}

/** The value that a group is there for: the last of its own that is read outside, or its last. */
export function resultOf(members) {
  const within = new Set(members);
  return [...members].reverse().find((member) => member.users.some((user) => !within.has(user))) ?? members.at(-1);
}
