// The source of a kernel and of the functions that it calls, with the line of the step, the lens's verdicts beside the
// lines, and a button at each barrier.

import { html, replace } from "/static/common/draw.js";

export class Source {
  /** node: where it is drawn. toggle(number): called when the barrier of this number is to be taken away or put back. */
  constructor(node, toggle) {
    Object.assign(this, { node, toggle, lines: new Map(), notes: new Map() });
  }

  /** Draw the source of a walk. removed: numbers of the barriers that are taken away; offer(number): whether a barrier has a button */
  draw(data, removed, offer) {
    this.lines.clear();
    const barriers = new Map(data.barriers.map(([source, line], number) => [`${source}:${line}`, number]));
    replace(this.node, data.sources.map((source, number) => [
      html("h3", {}, source.file.split("/").slice(-2).join("/")),
      ...source.lines.map((text, at) => this.line(text, source.first + at, number, barriers, removed, offer)),
    ]));
    this.data = data;
    this.showNotes();
  }

  line(text, line, source, barriers, removed, offer) {
    const number = barriers.get(`${source}:${line}`);
    const gone = removed.includes(number);
    const parts = [html("span", {}, String(line)), html("span", { class: "text" }, text || " ")];
    if (number !== undefined && offer(number)) {
      parts.push(html("button", { type: "button", onclick: () => this.toggle(number), "aria-pressed": gone },
        gone ? "Put this barrier back" : "Take this barrier away"));
    }
    const row = html("div", { class: gone ? "line gone" : "line" }, ...parts);
    this.lines.set(`${source}:${line}`, row);
    return row;
  }

  /** The button at a barrier, where it has one. */
  button(number) {
    const [source, line] = this.data.barriers[number];
    return this.lines.get(`${source}:${line}`)?.querySelector("button");
  }

  /** Write a sign in place of a barrier's button, or take it away again: there the reader looks who has pressed it. */
  sign(number, text) {
    const button = this.button(number);
    if (!button) return;
    button.disabled = text !== null;
    button.textContent = text ?? "Take this barrier away";
  }

  /** Mark the line of a step, and bring it into sight. */
  mark({ source, line }) {
    this.node.querySelector(".now")?.removeAttribute("aria-current");
    this.node.querySelector(".now")?.classList.remove("now");
    const row = this.lines.get(`${source}:${line}`);
    if (!row) return;
    row.classList.add("now");
    row.setAttribute("aria-current", "step");
    const [top, bottom] = [row.offsetTop, row.offsetTop + row.offsetHeight];
    const [from, height] = [this.node.scrollTop, this.node.clientHeight];
    if (top < from + 40 || bottom > from + height - 40) this.node.scrollTop = top - height / 2;
  }

  /** Write the lens's notes: [[file, line, level, text]]. */
  note(lines) {
    this.notes = new Map();
    for (const [file, line, level, text] of lines) {
      const key = `${file}:${line}`;
      if (!this.notes.has(key)) this.notes.set(key, []);
      this.notes.get(key).push({ level, text });
    }
    this.showNotes();
  }

  showNotes() {
    this.node.querySelectorAll(".note").forEach((each) => each.remove());
    this.data?.sources.forEach((source, number) => {
      source.lines.forEach((_, at) => {
        const line = source.first + at;
        for (const { level, text } of this.notes.get(`${source.file}:${line}`) ?? []) {
          this.lines.get(`${number}:${line}`).append(html("span", { class: `note ${level}` }, text));
        }
      });
    });
  }
}
