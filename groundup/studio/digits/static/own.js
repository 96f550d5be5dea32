// "Wrong? Tell it": the learner's own set of drawings.

import { fail, say, settle } from "/static/common/api.js";
import { bytes } from "/static/common/embedded.js";
import { html, replace } from "/static/common/draw.js";
import * as server from "/static/digits/server.js";
import { inkTile } from "/static/digits/tiles.js";

/**
 * The buttons and what the set holds.
 * drawn(): the drawing of this moment, or null
 */
export function makeOwnSet(labels, node, drawn) {
  const buttons = Array.from({ length: 10 }, (_, digit) => html("button", { type: "button", onclick: () => tell(digit) }, digit));
  replace(labels, buttons);

  async function tell(digit) {
    const pixels = drawn();
    if (pixels === null) return fail("There is no drawing yet. Draw a digit first.");
    await change(() => server.tell(pixels, digit), (set) => `Added as a ${digit}. Your set holds ${drawings(set.count)}.`);
  }

  async function change(asked, words) {
    try {
      const set = await asked();
      settle();
      show(set);
      say(words(set));
    } catch (error) {
      fail(error);
    }
  }

  function show(set) {
    if (set.count === 0) {
      replace(node, html("p", { class: "quiet" }, "Your set holds no drawing yet."));
      return;
    }
    const tiles = set.latest.map(({ label, pixels }) => html("li", {}, inkTile(bytes(pixels), null), html("b", {}, label)));
    const back = html("button", {
      type: "button", onclick: () => change(server.takeBack, (now) => `Taken back. Your set holds ${drawings(now.count)}.`),
    }, "Take the newest one back");
    replace(node,
      html("p", { id: "own-count" }, `Your set holds ${drawings(set.count)}, in ${set.folder}. The newest:`),
      html("ol", { class: "nearest" }, tiles), html("div", { class: "row" }, back),
      html("p", {}, "This command trains on them and on the 6,000 images of the bundled subset. Run it in the folder in which the "
        + "studio was started; then choose the run my-digits above."),
      html("pre", { tabindex: 0, id: "own-command" }, inWords(set.command)));
  }

  server.own().then(show, fail);
}

/** The command with its line breaks between options, and never inside one. */
function inWords(command) {
  return command.split(" --").flatMap((each, i) => [i ? " " : "", html("span", {}, i ? `--${each}` : each)]);
}

function drawings(count) {
  return `${count} ${count === 1 ? "drawing" : "drawings"}`;
}
