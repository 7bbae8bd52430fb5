// Parts of a graph: what lies near an instruction, what lies between two. Within one computation.

/** Instructions at most `hops` operands or users away. */
export function neighbours(center, hops, tree) {
  const distance = new Map([[center, 0]]);
  const queue = [center];
  for (const instruction of queue) {
    const far = distance.get(instruction);
    if (far === hops) {
      continue;
    }
    for (const other of [...tree.drawnInputs(instruction), ...drawnUsers(instruction, tree)]) {
      if (!distance.has(other) && other.computation === center.computation) {
        distance.set(other, far + 1);
        queue.push(other);
      }
    }
  }
  return inOrder(distance.keys(), center.computation);
}

/** Users as drawn: through tuple elements. */
export function drawnUsers(instruction, tree) {
  const users = [];
  const open = [...instruction.users];
  for (const user of open) { // grows
    if (!tree.isDetailed && user.isMinor) {
      open.push(...user.users);
    } else {
      users.push(user);
    }
  }
  return users;
}

/** Instructions on any path between `a` and `b`, whichever comes first; empty when there is none. */
export function between(a, b, tree) {
  const there = inBetween(a, b, tree);
  return there.length ? there : inBetween(b, a, tree);
}

function inBetween(start, end, tree) {
  const after = reached(start, (instruction) => drawnUsers(instruction, tree));
  if (!after.has(end)) {
    return [];
  }
  const before = reached(end, (instruction) => tree.drawnInputs(instruction));
  return inOrder([...after].filter((instruction) => before.has(instruction)), start.computation);
}

function reached(start, next) {
  const seen = new Set([start]);
  for (const instruction of seen) {
    for (const other of next(instruction)) {
      seen.add(other);
    }
  }
  return seen;
}

function inOrder(instructions, computation) {
  const wanted = new Set(instructions);
  const ordered = computation.nodes.filter((instruction) => wanted.has(instruction));
  return [...ordered, ...[...wanted].filter((instruction) => instruction.status === "removed")];
}

/** The call site through which `instruction` shows in `computation`; null when it does not. */
export function callSite(instruction, computation) {
  const seen = new Set();
  let here = instruction;
  while (here && here.computation !== computation) {
    if (seen.has(here.computation)) {
      return null;
    }
    seen.add(here.computation);
    [here] = here.computation?.callers ?? [];
  }
  return here ?? null;
}
