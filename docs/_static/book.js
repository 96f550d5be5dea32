/* A button that copies a block of code without its prompts; the length of its longest line, for paper; words of code:
   short ones stay whole, long ones break after a sign. */
document.addEventListener("DOMContentLoaded", () => {
  for (const word of document.querySelectorAll("code .pre"))
    if (word.textContent.length <= 24) word.classList.add("short");
    else word.innerHTML = word.innerHTML.replace(/[/_.]/g, "$&<wbr>");
  for (const code of document.querySelectorAll("div.highlight pre"))
    code.style.setProperty("--longest", Math.max(...code.textContent.split("\n").map((line) => line.length)));
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
