// The address says what is shown, so that it can be sent on: `#stage=3&select=exp.0`, or `#exp.0` in the last stage.

/** What the address says: the stage from 1, a computation, an instruction; what it leaves out is undefined. */
export function readAddress() {
  const hash = location.hash.slice(1);
  if (!/^(stage|computation|select)=/.test(hash)) {
    return hash ? { select: decoded(hash) } : {};
  }
  const fields = new URLSearchParams(hash);
  return {
    stage: Number.parseInt(fields.get("stage"), 10) || undefined,
    computation: fields.get("computation") ?? undefined,
    select: fields.get("select") ?? undefined,
  };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a lone percent sign
  }
}

/** Writes what is shown into the address. */
export function writeAddress({ stages, place, stage, computation, selected }) {
  const fields = new URLSearchParams();
  if (place < stages.length - 1) {
    fields.set("stage", place + 1);
  }
  if (computation && computation !== stage.entry?.name) {
    fields.set("computation", computation);
  }
  const isPlain = selected && !fields.size && !/^(stage|computation|select)=/.test(selected.name);
  if (selected && !isPlain) {
    fields.set("select", selected.name);
  }
  const hash = isPlain ? encodeURIComponent(selected.name) : fields.toString();
  try {
    history.replaceState(null, "", hash ? `#${hash}` : " ");
  } catch {
    // A page in a `data:` address has no history of its own.
  }
}
