// How a page talks with the studio: questions, actions, and what changes while it is watched.

/** Ask the studio. path: such as "/api/runs/list"; parameters: an object that becomes the query. */
export async function get(path, parameters = {}) {
  const query = new URLSearchParams(parameters).toString();
  return answered(await reached(query ? `${path}?${query}` : path, {}));
}

/** Have the studio do something. body: an object, sent as JSON. */
export async function post(path, body = {}) {
  const headers = { "Content-Type": "application/json" };
  return answered(await reached(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

/**
 * Listen to server-sent events: `onvalue` is called with each value, `onend` when there will be no more.
 *
 * The browser connects again by itself after a break. A browser has at most six connections to a server, so a hidden tab
 * gives its one back: it hears nothing until it is seen again, and then the newest value comes at once.
 * Returns an object with close().
 */
export function listen(path, onvalue, onend = () => {}) {
  const session = new URL(path, location.href).searchParams.get("session");
  let source = null;
  const tell = (word) => {
    if (session) navigator.sendBeacon(`/api/${word}`, new Blob([JSON.stringify({ session })], { type: "application/json" }));
  };
  const connect = () => {
    source = new EventSource(path);
    source.onmessage = (event) => onvalue(JSON.parse(event.data));
    source.addEventListener("end", () => { close(); onend(); });
    source.onerror = () => {
      if (source?.readyState !== EventSource.CLOSED) return; // it connects again by itself
      close(); // the studio refused: there is nothing to wait for
      onend();
    };
  };
  const disconnect = () => {
    source?.close();
    source = null;
  };
  const follow = () => {
    if (!document.hidden && !source) connect();
    if (!document.hidden || !source) return;
    disconnect();
    tell("hidden");
  };
  const leave = (event) => { if (!event.persisted) tell("left"); }; // a persisted page can be gone back to
  const close = () => {
    disconnect();
    document.removeEventListener("visibilitychange", follow);
    removeEventListener("pagehide", leave);
  };
  document.addEventListener("visibilitychange", follow);
  addEventListener("pagehide", leave);
  follow();
  return { close };
}

/** Tell a reader who listens instead of looking. Keep it short, and do not say something at every frame. */
export function say(text) {
  document.getElementById("said").textContent = text;
}

/** Show an error until it is closed or replaced. error: an Error or a sentence. */
export function fail(error) {
  const line = document.getElementById("failed");
  const close = document.createElement("button");
  close.textContent = "×";
  close.setAttribute("aria-label", "Close this message");
  close.onclick = () => { line.hidden = true; };
  line.replaceChildren(error instanceof Error ? error.message : String(error), close);
  line.hidden = false;
}

/** Take an error away that a later success has settled. */
export function settle() {
  document.getElementById("failed").hidden = true;
}

async function reached(path, options) {
  try {
    return await fetch(path, options);
  } catch {
    throw new Error("The studio does not answer. If it was ended, start it again: groundup studio");
  }
}

async function answered(response) {
  const text = await response.text();
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(text || `the studio answered ${response.status}`);
  }
  if (!response.ok) throw new Error(value.error ?? `the studio answered ${response.status}`);
  return value;
}
