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

const STREAMS = 5; // a browser has six connections to a server, and one has to be left for questions
const LOOK_AGAIN = 1000; // milliseconds
const FULL = "Five other windows of the studio are being followed, and a browser has no more connections to it. Close or hide one of them: this window then goes on by itself.";

/**
 * One of the places for a stream, which all windows of this browser share: a promise of a function that gives it back,
 * or of null when it is not wanted any more. A window that is closed gives its place back, too.
 */
async function placeForStream(wanted) {
  for (let told = false; ; told = true) {
    for (let i = 0; i < STREAMS; i++) {
      const giveBack = await new Promise((resolve) => {
        navigator.locks.request(`groundup-stream-${i}`, { ifAvailable: true }, (lock) => (
          lock ? new Promise((release) => { resolve(release); }) : resolve(null)));
      });
      if (!giveBack) continue;
      if (told) settle();
      return giveBack;
    }
    if (!wanted()) return null;
    fail(FULL);
    await new Promise((resolve) => { setTimeout(resolve, LOOK_AGAIN); });
  }
}

/**
 * Listen to server-sent events: `onvalue` is called with each value, `onend` when there will be no more.
 *
 * The browser connects again by itself after a break. A browser has at most six connections to a server, so a hidden tab
 * gives its one back: it hears nothing until it is seen again, and then the newest value comes at once. A window too many
 * says so, and waits for its turn.
 * Returns an object with close().
 */
export function listen(path, onvalue, onend = () => {}) {
  const session = new URL(path, location.href).searchParams.get("session");
  let source = null;
  let giveBack = null;
  let following = false;
  let asked = 0; // how often a connection was wanted or given up; what was wanted before that is not wanted any more
  const tell = (word) => {
    if (session) navigator.sendBeacon(`/api/${word}`, new Blob([JSON.stringify({ session })], { type: "application/json" }));
  };
  const connect = async () => {
    const mine = ++asked;
    following = true;
    const place = await placeForStream(() => mine === asked);
    if (mine !== asked) { place?.(); return; }
    giveBack = place;
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
    asked++;
    source?.close();
    giveBack?.();
    source = giveBack = null;
    following = false;
  };
  const follow = () => {
    if (!document.hidden && !following) connect();
    if (!document.hidden || !following) return;
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

export const UNREACHED = "The studio does not answer. If it was ended, start it again: groundup studio";

async function reached(path, options) {
  try {
    return await fetch(path, options);
  } catch {
    throw new Error(UNREACHED);
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
