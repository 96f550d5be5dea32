// Shortcuts: single keys that do something, unless the reader is typing.

/**
 * Call functions for keys: keys(document, { ArrowRight: next, b: toBarrier }). Names are those of KeyboardEvent.key.
 * A key with Ctrl, Alt or Meta stays the browser's; so does a key in a field, a list or on a slider, and an arrow key on
 * what it scrolls.
 */
export function keys(target, actions) {
  target.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
    if (event.target.closest("input, select, textarea, [contenteditable]")) return;
    if (event.key.startsWith("Arrow") && event.target.scrollWidth > event.target.clientWidth && event.target.matches(".scroll")) return;
    if (event.key === " " && event.target.closest("button, a, summary")) return;
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action(event);
  });
}
