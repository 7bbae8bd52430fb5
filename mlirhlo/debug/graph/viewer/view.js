// What is shown of what, and where: the state of the page, moving and zooming.

import { byId } from "./dom.js";
import { Tree } from "./tree.js";

/** The least scale at which every title can be read. */
export const READABLE = 0.8;
const MARGIN = 16;

export const state = {
  data: null, stages: null, place: 0, stage: null, tree: new Tree(), computation: "", selected: null, focus: null,
  start: null, coloring: null, shown: new Map(), arrangement: null, view: { x: 0, y: 0, scale: 1 }, border: null,
  isFitted: true, // until the user moves or zooms
  isFirst: true, // until the user unfolds something
};

/** Where a box is on the screen. */
export function onScreen(box) {
  const { x, y, scale } = state.view;
  return { x: box.x * scale + x, y: box.y * scale + y };
}

/** Moves and scales the picture as `state.view` says. */
export function moveView() {
  const { x, y, scale } = state.view;
  byId("world").setAttribute("transform", `translate(${x.toFixed(2)},${y.toFixed(2)}) scale(${scale.toFixed(5)})`);
  byId("scale").textContent = scale < 0.1 ? `${(scale * 100).toFixed(1)}%` : `${Math.round(scale * 100)}%`;
}

/** The scale at which the whole picture fits, and the space there is for it. */
function fitting() {
  const { clientWidth, clientHeight } = byId("canvas");
  const { width, height } = state.arrangement;
  const top = byId("focus").offsetHeight ? 52 : MARGIN; // the focus bar stands there
  const [across, down] = [Math.max(1, clientWidth - 2 * MARGIN), Math.max(1, clientHeight - top - MARGIN)];
  return { scale: Math.min(1.3, across / Math.max(1, width), down / Math.max(1, height)), across, down, top };
}

/** Whether the whole picture can be read when it fits. */
export function isReadable() {
  return fitting().scale >= READABLE;
}

/** Shows the whole picture, however small that is. */
export function fit() {
  const { scale, across, down, top } = fitting();
  const { width, height } = state.arrangement;
  state.view = { scale, x: MARGIN + (across - width * scale) / 2, y: top + (down - height * scale) / 2 };
  moveView();
  state.isFitted = true;
}

/** Zooms, keeping a place where it is. */
export function zoom(factor, x = byId("canvas").clientWidth / 2, y = byId("canvas").clientHeight / 2) {
  const { view } = state;
  const scale = Math.max(0.0005, Math.min(4, view.scale * factor));
  view.x = x - ((x - view.x) * scale) / view.scale;
  view.y = y - ((y - view.y) * scale) / view.scale;
  view.scale = scale;
  state.isFitted = false;
  moveView();
}

/** Brings a box to the middle. */
export function center(key) {
  const box = state.shown.get(key);
  if (!box) {
    return;
  }
  const { clientWidth, clientHeight } = byId("canvas");
  const { view } = state;
  view.scale = Math.max(view.scale, READABLE);
  state.isFitted = false;
  view.x = clientWidth / 2 - (box.x + box.width / 2) * view.scale;
  view.y = clientHeight / 2 - (box.y + Math.min(box.height, 200) / 2) * view.scale;
  moveView();
}

/** Brings a box to the middle when it is out of sight. */
export function keepInView(key) {
  const box = state.shown.get(key);
  const { x, y } = onScreen(box);
  const { clientWidth, clientHeight } = byId("canvas");
  if (x < 0 || y < 0 || x + box.width * state.view.scale > clientWidth || y + box.height * state.view.scale > clientHeight) {
    center(key);
  }
}

/** Says something for a moment. */
export function toast(text) {
  byId("toast").textContent = text;
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => { byId("toast").textContent = ""; }, 3500);
}
