// What is shown of what, and where: the state of the page, moving and zooming.

import { byId } from "./dom.js";
import { Tree } from "./tree.js";

const SMALLEST = 0.7;

export const state = {
  data: null, stages: null, place: 0, stage: null, tree: new Tree(), computation: "", selected: null, focus: null,
  start: null, coloring: null, shown: new Map(), arrangement: null, view: { x: 0, y: 0, scale: 1 }, border: null,
};

/** Where a box is on the screen. */
export function onScreen(box) {
  const { x, y, scale } = state.view;
  return { x: box.x * scale + x, y: box.y * scale + y };
}

/** Moves and scales the picture as `state.view` says. */
export function moveView() {
  const { x, y, scale } = state.view;
  byId("world").setAttribute("transform", `translate(${x.toFixed(2)},${y.toFixed(2)}) scale(${scale.toFixed(4)})`);
}

/** Shows the whole picture, or its top where the whole would be too small to read. */
export function fit() {
  const { clientWidth, clientHeight } = byId("canvas");
  const { width, height } = state.arrangement;
  const top = byId("focus").offsetHeight ? 52 : 20; // the focus bar stands there
  const room = clientHeight - byId("legend").offsetHeight - 16 - top; // and the legend at the bottom
  const scale = Math.min(1.3, (clientWidth - 48) / Math.max(1, width), (room - 8) / Math.max(1, height));
  const readable = Math.max(scale, SMALLEST);
  state.view = {
    scale: readable,
    x: (clientWidth - width * readable) / 2,
    // What does not fit starts at its top, where the parameters are.
    y: height * readable > room ? top : top + (room - height * readable) / 2,
  };
  moveView();
}

/** Zooms, keeping a place where it is. */
export function zoom(factor, x = byId("canvas").clientWidth / 2, y = byId("canvas").clientHeight / 2) {
  const { view } = state;
  const scale = Math.max(0.02, Math.min(4, view.scale * factor));
  view.x = x - ((x - view.x) * scale) / view.scale;
  view.y = y - ((y - view.y) * scale) / view.scale;
  view.scale = scale;
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
  view.scale = Math.max(view.scale, 0.75);
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
