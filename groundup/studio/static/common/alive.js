// Says on every page, within two seconds, that the studio was ended, and takes it back when it answers again.

import { UNREACHED, fail, settle } from "/static/common/api.js";

const EVERY = 1000; // milliseconds
let gone = false;

async function look() {
  if (!document.hidden) {
    const reached = await fetch("/static/common/alive.js", { method: "HEAD", cache: "no-store" }).then(() => true, () => false);
    if (!reached) fail(UNREACHED);
    else if (gone) settle();
    gone = !reached;
  }
  setTimeout(look, EVERY);
}

setTimeout(look, EVERY);
