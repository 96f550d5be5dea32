"""The page's script: the tooltips of the pictures by keyboard. Without it, the page shows them to the mouse only.

A picture with tooltips can be focused; arrow keys go from one to the next, and its words stand below the picture, where
screen readers announce them. The content policy names the script's hash, so that the browser runs no other.
"""

from __future__ import annotations

import base64
import hashlib

SCRIPT = """
for (const picture of document.querySelectorAll(".lens figure svg")) {
  const parts = [...picture.querySelectorAll("g")].filter(part => part.firstElementChild?.tagName === "title");
  if (!parts.length) continue;
  const said = document.createElement("output");
  said.className = "said";
  picture.closest(".scroll").after(said);
  picture.setAttribute("tabindex", "0");
  let at = -1;
  const show = number => {
    parts[at]?.classList.remove("here");
    at = (number + parts.length) % parts.length;
    parts[at].classList.add("here");
    said.textContent = parts[at].firstElementChild.textContent;
  };
  picture.addEventListener("focus", () => { if (at < 0) said.textContent = "Arrow keys go from one to the next."; });
  const steps = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1};
  picture.addEventListener("keydown", event => {
    if (!(event.key in steps)) return;
    event.preventDefault();
    show(at < 0 ? 0 : at + steps[event.key]);
  });
  picture.addEventListener("mouseover", event => {
    const number = parts.indexOf(event.target.closest("g"));
    if (number >= 0) show(number);
  });
}
"""

HASH = "sha256-" + base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
"""The name of the script in a Content-Security-Policy."""
