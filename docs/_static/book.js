/* A button that copies a block of code without its prompts, and figures in the colours of the page's switch. */
document.addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll("div.highlight:not(.source)")) {
    const button = document.createElement("button");
    button.className = "copy";
    button.type = "button";
    button.textContent = "copy";
    button.setAttribute("aria-label", "Copy this block");
    button.addEventListener("click", async () => {
      const code = block.querySelector("pre").cloneNode(true);
      code.querySelectorAll(".gp, .go").forEach((each) => each.remove());
      await navigator.clipboard.writeText(code.textContent.replace(/\n+$/, "\n"));
      button.textContent = "copied";
      setTimeout(() => (button.textContent = "copy"), 1500);
    });
    block.append(button);
  }
});
