// How far the first picture is folded: so that all of it fits and can be read.

import { isReadable, state } from "./view.js";

/** How many items the first picture may have: as many as fit and can be read. */
const LIMITS = [80, 48, 32, 22, 16, 12, 9, 7, 5, 3];

/** Folds so far that the whole can be read, then unfolds groups, largest first, as long as it can. */
export function foldToFit(arrangeAll) {
  const { tree } = state;
  tree.open.clear();
  const isReadableWith = (limit) => {
    tree.limit = limit;
    arrangeAll();
    return isReadable();
  };
  let [low, high] = [0, LIMITS.length - 1]; // the first that can be read is between them
  while (low < high) {
    const middle = (low + high) >> 1;
    [low, high] = isReadableWith(LIMITS[middle]) ? [low, middle] : [middle + 1, high];
  }
  isReadableWith(LIMITS[low]);
  for (let groups = scopesIn(state.arrangement.places); groups.length;) {
    const [{ item }] = groups;
    tree.toggle(item.key, true);
    arrangeAll();
    if (!isReadable()) {
      tree.toggle(item.key, false);
      arrangeAll();
      break;
    }
    groups = scopesIn(state.arrangement.places);
  }
}

/** Closed scopes, largest first. */
function scopesIn(places) {
  const found = [];
  const open = [...places];
  for (const place of open) { // grows
    if (place.inner) {
      open.push(...place.inner.places);
    } else if (place.item.kind === "scope" && !place.item.isParameters && place.item.count >= 4) {
      found.push(place);
    }
  }
  return found.sort((a, b) => b.item.count - a.item.count);
}
