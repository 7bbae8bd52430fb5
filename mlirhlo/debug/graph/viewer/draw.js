// The picture: groups, boxes and edges as SVG. Colours are classes, so that light and dark, and the
// page's policy, need nothing but the style sheet.

import { bufferText, byId, shape } from "./dom.js";
import { SIZES } from "./layout.js";

const HEAT = 9;
const COLORS = 13;

/** Classes for every way of colouring; made anew for each stage. */
export class Coloring {
  constructor(kind, stage) {
    this.kind = kind;
    this.legend = [];
    this.shardings = new Map();
    this.most = 0;
    if (kind === "sharding") {
      for (const instruction of stage.instructions.values()) {
        const { sharding } = instruction;
        if (sharding && !this.shardings.has(sharding)) {
          this.shardings.set(sharding, this.shardings.size % COLORS);
        }
      }
    } else if (kind === "buffer") {
      // The largest have colours of their own, in the order of the legend.
      const used = new Set([...stage.instructions.values()].map((instruction) => instruction.slot));
      const order = [...stage.slots.keys()].filter((slot) => used.has(slot)).sort((a, b) => stage.slots[b][1] - stage.slots[a][1] || a - b);
      this.slots = new Map(order.map((slot, rank) => [slot, rank]));
    } else if (kind !== "category") {
      for (const instruction of stage.instructions.values()) {
        this.most = Math.max(this.most, this.valueOf(instruction));
      }
    }
  }

  valueOf(instruction) {
    return { cost: instruction.flops, memory: instruction.accessed, size: instruction.bytes }[this.kind] ?? 0;
  }

  classOf(instruction) {
    if (this.kind === "category") {
      return `category-${instruction.category}`;
    }
    if (this.kind === "sharding") {
      return instruction.sharding ? `sharding-${this.shardings.get(instruction.sharding)}` : "category-dashed-border";
    }
    if (this.kind === "buffer") {
      const rank = this.slots.get(instruction.slot);
      return rank === undefined ? "category-dashed-border" : `sharding-${rank % COLORS}`;
    }
    return this.kind === "cost" && instruction.unknown ? "category-dashed-border" : this.heat(this.valueOf(instruction));
  }

  /** The class of a group: of its sum, where there is something to add up. */
  classOfGroup(members) {
    if (["category", "sharding", "buffer"].includes(this.kind)) {
      return "";
    }
    return this.heat(members.reduce((sum, member) => sum + this.valueOf(member), 0));
  }

  heat(value) {
    // Logarithmic: costs of one module span many orders of magnitude.
    const step = value > 0 ? Math.min(HEAT, Math.max(1, Math.round((HEAT * Math.log1p(value)) / Math.log1p(this.most)))) : 0;
    return `heat-${step}`;
  }
}

/** Draws an arrangement into the page; returns what is where, by item key. */
export function draw(arrangement, coloring, selected, marks) {
  const world = byId("world");
  const shown = new Map();
  const pieces = [];
  drawLevel(arrangement, 0, 0, pieces, shown, coloring, selected, marks);
  world.replaceChildren(...pieces);
  return shown;
}

function drawLevel(level, x, y, pieces, shown, coloring, selected, marks) {
  for (const edge of level.edges) {
    pieces.push(drawnEdge(edge, x, y, selected));
  }
  for (const place of level.places) {
    const [left, top] = [x + place.x, y + place.y];
    shown.set(place.item.key, { place, x: left, y: top, width: place.width, height: place.height });
    pieces.push(drawnPlace(place, left, top, coloring, selected, marks));
    if (place.inner) {
      const inset = (place.width - place.inner.width) / 2;
      drawLevel(place.inner, left + inset, top + SIZES.HEADER + SIZES.PADDING, pieces, shown, coloring, selected, marks);
    }
  }
}

function drawnEdge(edge, x, y, selected) {
  const points = edge.points.map(([px, py]) => [px + x, py + y]);
  const names = ["edge"];
  let marker = "arrow";
  if (edge.from.item.instruction && edge.from.item.instruction === selected) {
    names.push("out");
    marker = "arrow-out";
  } else if (edge.to.item.instruction && edge.to.item.instruction === selected) {
    names.push("in");
    marker = "arrow-in";
  }
  if (edge.isControl) {
    names.push("control");
  }
  if (edge.isGone) {
    names.push("gone");
  }
  if (edge.count > 1) {
    names.push("many");
  }
  if (edge.isFar) {
    names.push(edge.isHub ? "hub" : "far");
  }
  const path = shape("path", { class: names.join(" "), d: curve(points), "marker-end": `url(#${marker})` });
  const several = edge.count > 1 ? ` (${edge.count})` : "";
  path.append(shape("title", {}, `${edge.from.item.title} → ${edge.to.item.title}${several}`));
  return path;
}

/** A line through the points that turns gently. */
function curve(points) {
  if (!points.length) {
    return "";
  }
  const at = ([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`;
  if (points.length < 3) {
    return `M${points.map(at).join("L")}`;
  }
  let path = `M${at(points[0])}`;
  for (let i = 1; i < points.length - 1; i += 1) {
    const [x, y] = points[i];
    const [nextX, nextY] = points[i + 1];
    const end = i === points.length - 2 ? points[i + 1] : [(x + nextX) / 2, (y + nextY) / 2];
    path += `Q${at([x, y])} ${at(end)}`;
  }
  return path;
}

function drawnPlace(place, x, y, coloring, selected, marks) {
  const { item } = place;
  const { instruction } = item;
  const names = ["place", item.kind];
  if (item.kind === "leaf") {
    names.push(coloring.classOf(instruction));
    if (instruction.status !== "same") {
      names.push(instruction.status);
    }
    if (instruction.computation?.root === instruction) {
      names.push("root");
    }
    if (marks.border?.has(instruction)) {
      names.push("cut");
    }
  } else if (item.members.some((member) => member.status !== "same") && item.kind !== "stub") {
    names.push("touched");
  }
  if (item.kind === "scope" || item.kind === "flow") {
    names.push(coloring.classOfGroup(item.members));
  }
  if (instruction && instruction === selected && item.kind !== "stub") {
    names.push("selected");
  }
  if (instruction && instruction === marks.start) {
    names.push("start");
  }
  const isOpen = place.inner !== null;
  if (isOpen) {
    names.push("open");
  }
  const group = shape("g", {
    class: names.join(" "),
    transform: `translate(${x.toFixed(1)},${y.toFixed(1)})`,
    "data-key": item.key,
    role: "img",
    "aria-label": `${place.lines.join(", ")}${instruction && instruction.status !== "same" ? `, ${instruction.status}` : ""}`,
  });
  group.append(shape("rect", { width: place.width, height: place.height, rx: item.kind === "stub" ? 9 : isOpen ? 8 : 4 }));
  if (isOpen) {
    group.append(shape("text", { x: 12, y: 17, class: "heading" }, place.lines[0]));
  } else {
    place.lines.forEach((line, number) => {
      const left = (place.width - (item.unfolds ? SIZES.FOLD : 0)) / 2;
      group.append(shape("text", { x: left, y: 5 + SIZES.LINE * number + 11, class: number ? "more" : "name" }, line));
    });
  }
  if (item.unfolds) {
    const [cx, cy] = [place.width - 14, 14];
    const sign = isOpen ? "M-4,0H4" : "M-4,0H4M0,-4V4";
    group.append(shape("g", { class: "handle", transform: `translate(${cx},${cy})` }, shape("circle", { r: 8 }), shape("path", { d: sign })));
  }
  group.append(shape("title", {}, tooltip(item)));
  return group;
}

function tooltip(item) {
  if (!item.instruction) {
    return item.title;
  }
  const { text, opName, source } = item.instruction;
  return [text.slice(0, 600), opName.slice(0, 300), source.slice(0, 300)].filter(Boolean).join("\n");
}

const CATEGORIES = [
  ["white", "elementwise, structure"], ["yellow", "broadcast, update"], ["green", "data movement"], ["dark-blue", "dot, convolution"],
  ["purple", "reduction, gather"], ["orange", "parameter"], ["gray", "fusion, map"], ["brown", "communication"], ["dark-green", "call, loop, custom call"],
];

/** Says what the colours mean. */
export function drawLegend(coloring, stage, amountOf) {
  const entries = [];
  const entry = (name, text) => {
    const swatch = document.createElement("i");
    swatch.className = name;
    const line = document.createElement("span");
    line.append(swatch, text);
    entries.push(line);
  };
  if (coloring.kind === "category") {
    const present = new Set([...stage.instructions.values()].map((instruction) => instruction.category.replace("dark-orange", "orange")));
    CATEGORIES.filter(([name]) => present.has(name)).forEach(([name, text]) => entry(`category-${name}`, text));
  } else if (coloring.kind === "sharding") {
    [...coloring.shardings].slice(0, COLORS).forEach(([text, number]) => entry(`sharding-${number}`, text.slice(0, 60)));
    entry("category-dashed-border", coloring.shardings.size ? "no sharding" : "no instruction has a sharding");
  } else if (coloring.kind === "buffer") {
    [...coloring.slots.keys()].slice(0, 8).forEach((slot, rank) => entry(`sharding-${rank}`, bufferText(stage.slots[slot])));
    entry("category-dashed-border", coloring.slots.size ? "no buffer of its own" : "buffers are assigned in the last stage");
  } else {
    [0, 3, 6, HEAT].forEach((step) => {
      entry(`heat-${step}`, step ? amountOf(Math.expm1((Math.log1p(coloring.most) * step) / HEAT)) : "0");
    });
    if (coloring.kind === "cost" && [...stage.instructions.values()].some((instruction) => instruction.unknown)) {
      entry("category-dashed-border", "unknown");
    }
  }
  if (stage.changes) {
    ["added", "changed", "moved", "renamed", "removed"].forEach((status) => entry(`swatch-${status}`, status));
  }
  byId("legend").replaceChildren(...entries);
}
