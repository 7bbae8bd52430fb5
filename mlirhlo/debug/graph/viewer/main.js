// The page: what is shown, what is selected, and every way to change that.

import { amount, byId, bytes, element, shortened } from "./dom.js";
import { Stages, readData } from "./data.js";
import { readAddress, writeAddress } from "./address.js";
import { listStages, markStage } from "./passes.js";
import { Item } from "./tree.js";
import { foldToFit } from "./fold.js";
import { arrange } from "./layout.js";
import { between, callSite, drawnUsers, neighbours } from "./select.js";
import { Coloring, draw, drawLegend } from "./draw.js";
import { setUpSearch } from "./search.js";
import { showChanges, showInstruction, showText } from "./panel.js";
import { center, fit, keepInView, moveView, onScreen, state, toast, zoom } from "./view.js";
import { showKeys } from "./help.js";
import { setUpPointer } from "./pointer.js";

const MOST_BOXES = 700;
const MOST_IN_FOCUS = 400;
/** Calls that are unfolded to show an instruction; within more, its computation is shown alone. */
const MOST_NESTED = 12;

// ---------------------------------------------------------------- showing

function currentComputation() {
  return state.stage.computations.get(state.computation) ?? state.stage.entry;
}

/** Lays out and draws everything anew; keeps `anchor` (an item's key) where it is on the screen. */
function refresh(anchor = null) {
  const before = anchor && state.shown.get(anchor);
  const at = before && onScreen(before);
  arrangeAll();
  redraw();
  const now = anchor && state.shown.get(anchor);
  if (at && now) {
    state.view.x += at.x - onScreen(now).x;
    state.view.y += at.y - onScreen(now).y;
    moveView();
  }
}

function arrangeAll() {
  state.arrangement = arrange(topItems(), state.tree);
}

function topItems() {
  const computation = currentComputation();
  state.border = null;
  if (!computation) {
    return [];
  }
  if (!state.focus) {
    return state.tree.itemsOf(computation, computation.name, state.tree.limit);
  }
  const { instructions, place } = focused();
  const within = new Set(instructions);
  state.border = new Set(instructions.filter((instruction) =>
    [...state.tree.drawnInputs(instruction), ...drawnUsers(instruction, state.tree)].some((other) => !within.has(other) && other.computation === place)));
  return instructions.map((instruction) => new Item(`focus/${instruction.name}`, "leaf", instruction.name, [instruction]));
}

/** The instructions that the focus leaves, and the computation they stand in. */
function focused() {
  const { focus, stage, tree } = state;
  const [a, b] = focus.names.map((name) => stage.named(name));
  if (!a || (focus.kind === "path" && !b)) {
    state.focus = null;
    return { instructions: state.tree.instructionsOf(currentComputation()), place: currentComputation() };
  }
  let found = focus.kind === "near" ? neighbours(a, focus.hops, tree) : between(a, b, tree);
  if (focus.kind === "path" && !found.length) {
    found = a === b ? [a] : [a, b];
    focus.note = "nothing leads from one to the other";
  } else {
    focus.note = "";
  }
  if (found.length > MOST_IN_FOCUS) {
    focus.note = `the first ${MOST_IN_FOCUS} of ${found.length}`;
    const kept = new Set(found.slice(0, MOST_IN_FOCUS));
    [a, b].filter(Boolean).forEach((instruction) => kept.add(instruction));
    found = [...kept];
  }
  return { instructions: found, place: a.computation };
}

function redraw() {
  state.shown = draw(state.arrangement, state.coloring, state.selected, { border: state.border, start: state.start });
  showFocus();
}

function showFocus() {
  const bar = byId("focus");
  bar.hidden = !state.focus;
  if (!state.focus) {
    return;
  }
  const { focus } = state;
  const names = focus.names.map((name) => shortened(name, 40));
  const parts = [];
  if (focus.kind === "near") {
    parts.push(`Neighbourhood of ${names[0]}, ${focus.hops} ${focus.hops === 1 ? "hop" : "hops"} `);
    parts.push(element("button", { id: "fewer", title: "One hop less ( − )", onclick: () => hop(-1) }, "−"));
    parts.push(element("button", { id: "farther", title: "One hop more ( + )", onclick: () => hop(1) }, "+"));
  } else {
    parts.push(`Paths between ${names[0]} and ${names[1]} `);
  }
  if (focus.note) {
    parts.push(element("em", {}, `${focus.note} `));
  }
  parts.push(element("button", { id: "whole", title: "( Esc )", onclick: unfocus }, "Show all"));
  bar.replaceChildren(...parts);
}

function hop(step) {
  state.focus.hops = Math.max(1, Math.min(30, state.focus.hops + step));
  refresh();
  fit();
}

function unfocus() {
  state.focus = null;
  refresh();
  state.selected ? reveal(state.selected) : fit();
}

// ---------------------------------------------------------------- selecting

function keyOf(instruction) {
  for (const [key, { place }] of state.shown) {
    if (place.item.kind === "leaf" && place.item.instruction === instruction) {
      return key;
    }
  }
  return null;
}

function select(instruction) {
  state.selected = instruction;
  redraw();
  showInstruction(instruction, state.stage, actions);
  if (!byId("text").hidden) {
    showText(instruction?.computation ?? currentComputation(), instruction, actions);
  }
  writeAddress(state);
}

/** Unfolds whatever hides `instruction`, selects it and brings it into view. */
function reveal(instruction) {
  if (instruction.isMinor && !state.tree.isDetailed) {
    showDetails(true);
  }
  if (state.focus && !keyOf(instruction)) {
    state.focus = null;
  }
  if (!state.focus) {
    const chain = [];
    let here = instruction;
    const seen = new Set();
    while (here && here.computation !== currentComputation() && !seen.has(here.computation)) {
      chain.unshift(here);
      seen.add(here.computation);
      [here] = here.computation?.callers ?? [];
    }
    if (!here || here.computation !== currentComputation() || chain.length > MOST_NESTED) {
      state.computation = instruction.computation?.name ?? state.computation;
      byId("computations").value = state.computation;
      chain.splice(0, chain.length);
      here = instruction;
    }
    refresh();
    for (const step of [here, ...chain]) {
      openUntil(step);
    }
  }
  select(instruction);
  center(keyOf(instruction));
}

/** Unfolds groups until `instruction` is drawn, and then the instruction that comes after it on the way in. */
function openUntil(instruction) {
  for (let depth = 0; depth < 40 && !keyOf(instruction); depth += 1) {
    let hider = null;
    for (const { place } of state.shown.values()) {
      const { item } = place;
      const calls = item.kind === "leaf" && item.instruction.called.includes(instruction.computation);
      if (!place.inner && item.unfolds && (calls || (item.kind !== "leaf" && item.members.includes(instruction)))) {
        hider = item;
        break;
      }
    }
    if (!hider) {
      return;
    }
    state.tree.toggle(hider.key, true);
    state.isFirst = false;
    refresh();
  }
}

const actions = {
  go: (instruction) => {
    const here = state.stage.named(instruction.name);
    here && reveal(here);
  },
  near: (instruction) => {
    focusOn({ kind: "near", names: [instruction.name], hops: 2 }, instruction);
  },
  start: () => state.start,
  path: (instruction) => {
    if (!state.start || state.start === instruction) {
      state.start = instruction;
      toast(`Paths start at ${shortened(instruction.name, 40)}: select another instruction and press p`);
      select(instruction);
      return;
    }
    const [start, end] = sameComputation(state.start, instruction);
    state.start = null;
    focusOn({ kind: "path", names: [start.name, end.name] }, instruction);
  },
  text: (instruction) => {
    showTab("text");
    showText(instruction?.computation ?? currentComputation(), instruction, actions);
  },
  search: (query) => {
    byId("query").value = query;
    byId("query").focus();
    byId("query").dispatchEvent(new Event("input"));
  },
};

function focusOn(focus, instruction) {
  state.focus = focus;
  refresh();
  select(instruction);
  fit();
}

/** The two instructions as they show in one computation: a call stands for what lies within. */
function sameComputation(a, b) {
  for (let place = a.computation, seen = new Set(); place && !seen.has(place); place = place.callers[0]?.computation) {
    seen.add(place);
    const [left, right] = [callSite(a, place), callSite(b, place)];
    if (left && right) {
      return [left, right];
    }
  }
  return [a, b];
}

// ---------------------------------------------------------------- folding, colours, stages

function toggle(item) {
  if (!item.unfolds) {
    return;
  }
  state.tree.toggle(item.key);
  state.isFirst = false;
  refresh(item.key);
}

function unfoldLevel() {
  const closed = [...state.shown.values()].map(({ place }) => place).filter((place) => place.item.unfolds && !place.inner);
  let boxes = state.shown.size;
  let opened = 0;
  for (const { item } of closed) {
    const inside = state.tree.inside(item).length;
    if (boxes + inside > MOST_BOXES) {
      continue;
    }
    boxes += inside;
    opened += 1;
    state.tree.toggle(item.key, true);
  }
  if (opened < closed.length) {
    toast(`${opened} of ${closed.length} unfolded: more would be too much for one picture`);
  }
  state.isFirst = false;
  refresh();
  fit();
}

/** The first picture: folded so far that the whole can be read, and no farther. */
function firstView() {
  foldToFit(arrangeAll);
  redraw();
  fit();
  state.isFirst = true;
}

function foldAll() {
  state.focus = null;
  firstView();
}

function color(kind) {
  byId("coloring").value = kind;
  state.coloring = new Coloring(kind, state.stage);
  redraw();
  drawLegend(state.coloring, state.stage, kind === "cost" ? amount : bytes);
}

function showDetails(isDetailed) {
  state.tree.isDetailed = isDetailed;
  state.tree.reset(state.stage);
  byId("details").setAttribute("aria-pressed", String(isDetailed));
  refresh();
}

function showStage(place) {
  state.place = Math.max(0, Math.min(state.stages.length - 1, place));
  state.stage = state.stages.at(state.place);
  state.tree.reset(state.stage);
  state.selected = state.selected && state.stage.named(state.selected.name);
  state.start = state.start && state.stage.named(state.start.name);
  state.coloring = new Coloring(byId("coloring").value, state.stage);
  byId("slider").value = state.place;
  byId("stage").textContent = `${state.place + 1} / ${state.stages.length}  ${shortened(state.stage.label, 90)}`;
  listComputations();
  markStage(state.place);
  drawLegend(state.coloring, state.stage, state.coloring.kind === "cost" ? amount : bytes); // first: it takes space
  if (state.isFirst && state.isFitted && !state.focus) {
    firstView();
  } else {
    refresh();
    state.isFitted && fit();
  }
  writeAddress(state);
  showInstruction(state.selected, state.stage, actions);
  showChanges(state.stage, actions);
  if (!byId("text").hidden) {
    showText(state.selected?.computation ?? currentComputation(), state.selected, actions);
  }
}

function listComputations() {
  const list = byId("computations");
  const shown = [...state.stage.computations.values()].filter((computation) => !computation.word);
  shown.sort((a, b) => Number(b.isEntry) - Number(a.isEntry));
  list.replaceChildren(...shown.slice(0, 2000).map((computation) =>
    element("option", { value: computation.name }, `${computation.isEntry ? "ENTRY " : ""}${shortened(computation.name, 60)} (${computation.nodes.length})`)));
  list.value = currentComputation()?.name ?? "";
}

function showTab(name) {
  for (const other of ["instruction", "text", "changes"]) {
    byId(other).hidden = other !== name;
    byId(`tab-${other}`).setAttribute("aria-selected", String(other === name));
  }
  if (name === "text") {
    showText(state.selected?.computation ?? currentComputation(), state.selected, actions);
  }
}

// ---------------------------------------------------------------- keys and pointer

/** The box nearest to the selected one in a direction. */
function step(direction) {
  const from = state.selected && state.shown.get(keyOf(state.selected));
  const boxes = [...state.shown.values()].filter(({ place }) => place.item.instruction && place.item.kind === "leaf");
  if (!from) {
    boxes.length && select(boxes[0].place.item.instruction);
    return;
  }
  const { selected, tree } = state;
  const linked = { ArrowUp: tree.drawnInputs(selected), ArrowDown: drawnUsers(selected, tree) }[direction];
  const wanted = linked && new Set(linked);
  let [best, least] = [null, Infinity];
  for (const box of boxes) {
    const [dx, dy] = [box.x + box.width / 2 - from.x - from.width / 2, box.y + box.height / 2 - from.y - from.height / 2];
    if (box === from || (wanted && !wanted.has(box.place.item.instruction))) {
      continue;
    }
    if (!wanted && (Math.abs(dy) > 60 || (direction === "ArrowLeft" ? dx >= 0 : dx <= 0))) {
      continue;
    }
    const distance = Math.abs(dx) + Math.abs(dy);
    [best, least] = distance < least ? [box, distance] : [best, least];
  }
  if (best) {
    select(best.place.item.instruction);
    keepInView(keyOf(state.selected));
  }
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, dialog")) {
    return;
  }
  const { selected } = state;
  const ways = ["category", "sharding", "cost", "memory", "size", "buffer"];
  const table = {
    "/": () => byId("query").focus(),
    "?": showKeys,
    Enter: () => { const box = selected && state.shown.get(keyOf(selected)); box && toggle(box.place.item); },
    Escape: () => (state.focus ? unfocus() : select(null)),
    "+": () => (state.focus?.kind === "near" ? hop(1) : zoom(1.25)),
    "=": () => (state.focus?.kind === "near" ? hop(1) : zoom(1.25)),
    "-": () => (state.focus?.kind === "near" ? hop(-1) : zoom(0.8)),
    n: () => selected && actions.near(selected),
    p: () => selected && actions.path(selected),
    t: () => actions.text(selected),
    i: () => showTab("instruction"),
    f: fit, u: unfoldLevel, o: foldAll,
    c: () => showDetails(!state.tree.isDetailed),
    g: toggleGhosts,
    "[": () => showStage(state.place - 1),
    "]": () => showStage(state.place + 1),
  };
  const action = event.key.startsWith("Arrow") ? () => step(event.key) : ways[event.key - 1] ? () => color(ways[event.key - 1]) : table[event.key];
  // Enter on a button is the button's.
  if (action && !(event.key === "Enter" && event.target.closest?.("button"))) {
    event.preventDefault();
    action();
  }
}

function toggleGhosts() {
  state.tree.showsGhosts = !state.tree.showsGhosts;
  state.tree.reset(state.stage);
  byId("ghosts").setAttribute("aria-pressed", String(state.tree.showsGhosts));
  refresh();
}

function setUp() {
  byId("title").textContent = shortened(state.data.title, 120);
  byId("title").title = shortened(state.data.title, 2000);
  byId("computations").addEventListener("change", (event) => {
    state.computation = event.target.value;
    state.focus = null;
    firstView();
    writeAddress(state);
  });
  byId("coloring").addEventListener("change", (event) => color(event.target.value));
  const clicks = {
    unfold: unfoldLevel, fold: foldAll, fit, help: showKeys, "zoom-in": () => zoom(1.25), "zoom-out": () => zoom(0.8), ghosts: toggleGhosts,
    details: () => showDetails(!state.tree.isDetailed),
    before: () => showStage(state.place - 1), after: () => showStage(state.place + 1),
    theme: () => {
      const isDark = getComputedStyle(document.documentElement).colorScheme.trim() === "dark";
      document.documentElement.dataset.theme = isDark ? "light" : "dark";
    },
    "tab-instruction": () => showTab("instruction"), "tab-text": () => showTab("text"), "tab-changes": () => showTab("changes"),
  };
  for (const [id, action] of Object.entries(clicks)) {
    byId(id).addEventListener("click", action);
  }
  byId("slider").addEventListener("input", (event) => showStage(Number(event.target.value)));
  document.addEventListener("keydown", onKey);
  addEventListener("resize", () => (state.isFitted ? fit() : moveView()));
  addEventListener("hashchange", () => goTo(readAddress()));
  if (state.stages.length > 1) {
    listStages(state.data, showStage);
  }
  setUpPointer({ select, toggle, reveal });
  setUpSearch(() => state.stage, actions.go);
}

/** Shows what an address says: a stage, a computation, an instruction. */
function goTo({ stage, computation, select: name }) {
  const place = stage ? stage - 1 : state.stages.length - 1;
  if (computation !== undefined && state.stages.at(Math.max(0, Math.min(place, state.stages.length - 1))).computations.has(computation)) {
    state.computation = computation;
  }
  showStage(place);
  const instruction = name && state.stage.named(name);
  instruction && reveal(instruction);
}

async function main() {
  const started = performance.now();
  state.data = await readData();
  state.stages = new Stages(state.data);
  const isStaged = state.stages.length > 1;
  byId("timeline").hidden = !isStaged;
  byId("passes").hidden = !isStaged;
  byId("tab-changes").hidden = !isStaged;
  byId("slider").max = state.stages.length - 1;
  const { start } = state.data;
  byId("coloring").value = start.sharding ? "sharding" : "category";
  state.computation = start.computation ?? "";
  setUp();
  goTo(start.center || start.path ? {} : readAddress());
  if (start.path) {
    focusOn({ kind: "path", names: start.path }, state.stage.named(start.path[0]));
  } else if (start.center) {
    focusOn({ kind: "near", names: [start.center], hops: start.radius }, state.stage.named(start.center));
  }
  byId("canvas").focus({ preventScroll: true });
  document.documentElement.dataset.ready = String(Math.round(performance.now() - started));
}

main().catch((problem) => {
  byId("toast").textContent = `The page cannot be shown: ${problem.message}`;
  throw problem;
});
