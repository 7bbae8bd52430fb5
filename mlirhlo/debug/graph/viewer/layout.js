// Where things stand. Each open group is laid out by itself and is one node to what surrounds it, so
// that unfolding a fusion costs a small layout, whatever the size of the module.

import { layout } from "./dagre.js";
import { amount, shortened } from "./dom.js";
import { resultOf } from "./groups.js";

const LINE = 15;
const HEADER = 24;
const PADDING = 12;
const LONGEST = 38;
/** What the sign for unfolding takes of a box. */
const FOLD = 24;
/** An item that more others read is a hub. */
const HUB = 14;
/** Layers that edges may cross in all. */
const LAYERS = 500;

const pen = document.createElement("canvas").getContext("2d");
const FONT = 'system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

function widthOf(text, isBold) {
  pen.font = isBold ? `600 12px ${FONT}` : `11px ${FONT}`;
  return pen.measureText(text).width;
}

/** A shape without tiles, and without layouts that go without saying: row-major ones. */
function plainShape(text) {
  return text.replace(/\{([\d,]*)(?::[^}]*)?\}/g, (whole, order) => {
    const axes = order ? order.split(",").map(Number) : [];
    return axes.every((axis, place) => axis === axes.length - 1 - place) ? "" : `{${order}}`;
  });
}

/** The lines of a box, and how large it is. */
function boxOf(item, tree) {
  const lines = [];
  const { instruction } = item;
  if (item.kind === "stub") {
    lines.push(`from ${shortened(item.title, LONGEST - 5)}`);
  } else if (item.kind === "leaf") {
    const isNamed = instruction.name.startsWith(instruction.opcode);
    if (instruction.opcode === "parameter") {
      lines.push(shortened(`${instruction.note}: ${instruction.name}`, LONGEST));
    } else {
      lines.push(shortened(instruction.name, LONGEST));
    }
    const words = [];
    if ((!isNamed && instruction.opcode !== "parameter") || instruction.opcode === "fusion" || instruction.opcode === "custom-call") {
      words.push(instruction.note ? `${instruction.opcode} ${instruction.note}` : instruction.opcode);
    }
    words.push(...instruction.called.filter((computation) => computation.word).map((computation) => computation.word));
    if (words.length) {
      lines.push(shortened(words.join(" · "), LONGEST));
    }
    lines.push(shortened(plainShape(instruction.shape), LONGEST));
    const constants = tree.isDetailed ? [] : instruction.inputs.filter((input) => input.opcode === "constant" && input.isMinor);
    if (constants.length && constants.length <= 2) {
      lines.push(shortened(constants.map((input) => `= ${valueOf(input)}`).join("  "), LONGEST));
    }
  } else {
    lines.push(shortened(item.title, LONGEST));
    if (item.purpose !== item.title && !item.isParameters) {
      lines.push(shortened(item.purpose, LONGEST));
    }
    const shape = item.kind === "computation" || item.isParameters ? "" : plainShape(resultOf(item.members).shape);
    lines.push(`${shape && !shape.startsWith("(") ? `→ ${shortened(shape, LONGEST - 18)} · ` : ""}${amount(item.count)} instructions`);
  }
  const widest = Math.max(...lines.map((line, number) => widthOf(line, number === 0)));
  return { lines, width: Math.max(60, widest + 20 + (item.unfolds ? FOLD : 0)), height: lines.length * LINE + 10 };
}

/** The value of a constant as its text has it. */
export function valueOf(constant) {
  const start = constant.text.indexOf("constant(") + "constant(".length;
  const end = constant.text.indexOf(")", start);
  const type = constant.shape.replace(/\{.*/, "");
  return `${type.endsWith("[]") ? "" : `${type} `}${constant.text.slice(start, end < 0 ? undefined : end)}`;
}

/**
 * Lays `items` out, open ones with their content.
 * Result: width, height, places ({item, x, y, width, height, lines, inner}), edges ({points, from, to, …}).
 */
export function arrange(items, tree, holder = null) {
  const stubs = holder ? tree.stubs(holder, items.length) : [];
  const places = [...stubs, ...items].map((item) => placed(item, tree));
  const owners = new Map();
  for (const place of places) {
    for (const member of place.item.members) {
      owners.set(member, place);
    }
  }
  const edges = edgesOf(places, owners, tree);
  setFarApart(places, edges);
  const nodes = places.map((place, number) => {
    place.number = number;
    return { v: `${number}`, width: place.width, height: place.height };
  });
  const near = edges.filter((edge) => !edge.isFar);
  const lines = near.map((edge) => ({
    v: `${edge.from.number}`, w: `${edge.to.number}`, minlen: 1, weight: 1, width: 0, height: 0, labeloffset: 0, labelpos: "c",
  }));
  if (lines.length) {
    layout(nodes, lines, { nodesep: 18, ranksep: 34, edgesep: 10, rankdir: "TB", ...(nodes.length > 400 ? { ranker: "longest-path" } : {}) }, {});
  } else {
    shelve(nodes);
  }
  return framed(places, edges, near, nodes, lines);
}

function placed(item, tree) {
  const place = { item, ...boxOf(item, tree), inner: null };
  if (item.unfolds && tree.open.has(item.key)) {
    place.inner = arrange(tree.inside(item), tree, item);
    place.width = Math.max(place.width + 24, place.inner.width + 2 * PADDING);
    place.height = place.inner.height + HEADER + 2 * PADDING;
  }
  return place;
}

function edgesOf(places, owners, tree) {
  const found = new Map();
  for (const to of places) {
    if (to.item.kind === "stub" || to.item.kind === "computation") {
      continue;
    }
    for (const member of to.item.members) {
      for (const input of tree.drawnInputs(member)) {
        const from = owners.get(input);
        if (!from || from === to) {
          continue;
        }
        const key = `${from.item.key}\n${to.item.key}`;
        const edge = found.get(key);
        if (edge) {
          edge.count += 1;
        } else {
          found.set(key, { from, to, count: 1, isControl: member.control.includes(input.name), isGone: member.status === "removed" || input.status === "removed" });
        }
      }
    }
  }
  return [...found.values()];
}

/** Rows of boxes where nothing connects them. */
function shelve(nodes) {
  const area = nodes.reduce((sum, node) => sum + (node.width + 18) * (node.height + 18), 0);
  const limit = Math.max(420, Math.sqrt(area) * 1.6);
  let [x, y, tallest] = [0, 0, 0];
  for (const node of nodes) {
    if (x && x + node.width > limit) {
      [x, y, tallest] = [0, y + tallest + 18, 0];
    }
    node.x = x + node.width / 2;
    node.y = y + node.height / 2;
    x += node.width + 18;
    tallest = Math.max(tallest, node.height);
  }
}

/**
 * Marks edges that the layout leaves out: those of hubs, which everything reads, and the longest ones
 * beyond a budget. Layers cost time, and lines across the whole picture say little.
 */
function setFarApart(places, edges) {
  const leaving = new Map();
  edges.forEach((edge) => leaving.set(edge.from, (leaving.get(edge.from) ?? 0) + 1));
  edges.forEach((edge) => {
    edge.isFar = edge.isHub = leaving.get(edge.from) > HUB || edge.from.item.isParameters;
  });
  const rank = ranks(places, edges.filter((edge) => !edge.isFar));
  const spans = edges.filter((edge) => !edge.isFar).map((edge) => ({ edge, span: Math.abs(rank.get(edge.to) - rank.get(edge.from)) }));
  spans.sort((a, b) => a.span - b.span);
  let budget = LAYERS;
  const held = new Set();
  for (const { edge, span } of spans) {
    budget -= Math.max(0, span - 1);
    edge.isFar = budget < 0 && held.has(edge.to) && held.has(edge.from);
    held.add(edge.to).add(edge.from);
  }
}

/** The layer of every place by its longest way from above; ways back, in a cycle, are overlooked. */
function ranks(places, edges) {
  const rank = new Map(places.map((place) => [place, 0]));
  const waiting = new Map(places.map((place) => [place, 0]));
  const next = new Map(places.map((place) => [place, []]));
  for (const edge of edges) {
    waiting.set(edge.to, waiting.get(edge.to) + 1);
    next.get(edge.from).push(edge.to);
  }
  const queue = places.filter((place) => !waiting.get(place));
  const done = new Set(queue);
  for (let at = 0; done.size < places.length || at < queue.length; at += 1) {
    if (at === queue.length) {
      const stuck = places.find((place) => !done.has(place));
      done.add(stuck);
      queue.push(stuck);
    }
    for (const place of next.get(queue[at])) {
      waiting.set(place, waiting.get(place) - 1);
      if (!done.has(place)) {
        rank.set(place, Math.max(rank.get(place), rank.get(queue[at]) + 1));
        if (!waiting.get(place)) {
          done.add(place);
          queue.push(place);
        }
      }
    }
  }
  return rank;
}

function framed(places, edges, near, nodes, lines) {
  const box = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  const widen = (x, y, halfWidth = 0, halfHeight = 0) => {
    box.left = Math.min(box.left, x - halfWidth);
    box.right = Math.max(box.right, x + halfWidth);
    box.top = Math.min(box.top, y - halfHeight);
    box.bottom = Math.max(box.bottom, y + halfHeight);
  };
  nodes.forEach((node) => widen(node.x, node.y, node.width / 2, node.height / 2));
  lines.forEach((line) => line.points?.forEach((point) => widen(point.x, point.y)));
  if (!nodes.length) {
    widen(0, 0);
  }
  places.forEach((place, number) => {
    place.x = nodes[number].x - place.width / 2 - box.left;
    place.y = nodes[number].y - place.height / 2 - box.top;
  });
  near.forEach((edge, number) => {
    edge.points = (lines[number].points ?? []).map((point) => [point.x - box.left, point.y - box.top]);
  });
  for (const edge of edges) {
    if (edge.isFar) {
      const { from, to } = edge;
      edge.points = [[from.x + from.width / 2, from.y + from.height], [to.x + to.width / 2, to.y]];
    }
  }
  return { width: box.right - box.left, height: box.bottom - box.top, places, edges };
}

export const SIZES = { HEADER, PADDING, LINE, FOLD };
