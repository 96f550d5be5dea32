// The page Benchmarks: two files are chosen; bars show one work of both, and a table says what differs.

import { fail, get, say, settle } from "/static/common/api.js";
import { html, replace } from "/static/common/draw.js";

const at = (id) => document.getElementById(id);
let shown = null;
let turn = 0; // the newest choice; an earlier answer comes too late

/** Offer every file. Returns them. */
async function list() {
  const { groups, files, folder } = await get("/api/benchmarks/files");
  const options = () => Object.entries(groups).map(([group, label]) => {
    const found = files.filter((each) => each.group === group);
    return found.length > 0 && html("optgroup", { label }, ...found.map((each) => html("option", { value: each.code }, each.name)));
  });
  replace(at("mine"), options());
  replace(at("other"), html("option", { value: "" }, "nothing"), options());
  at("folder").textContent = folder;
  at("none").hidden = files.some((each) => each.group !== "recorded");
  at("undocumented").hidden = files.some((each) => each.group === "recorded");
  return files;
}

/** Show a file beside another one. other: its code, "nearest" or "". Returns what is wrong, or null. */
async function load(mine, other) {
  let wrong = null;
  const own = ++turn;
  try {
    const found = await get("/api/benchmarks/shown", { mine, other });
    if (own !== turn) return null;
    shown = found;
    settle();
    begin();
  } catch (error) {
    if (own !== turn) return null;
    fail(wrong = error);
  }
  if (shown) [at("mine").value, at("other").value] = [shown.sides[0].code, shown.sides[1]?.code ?? ""];
  for (const each of at("other").options) each.disabled = each.value === at("mine").value;
  return wrong;
}

function begin() {
  const { sides, works, comparison } = shown;
  at("shown").hidden = false;
  replace(at("sides"), sides.map((side) => html("li", {}, html("b", {}, side.label), `: ${side.about}. `,
    html("a", { href: `/api/benchmarks/report?file=${side.code}`, target: "_blank" }, "All figures and tables", html("span", { class: "hidden" }, ` of ${side.name}`)))));
  const titled = (work) => (work.common ? work.title : `${work.title} (not in both)`);
  replace(at("work"), [...new Set(works.map((each) => each.group))].map((label) => html("optgroup", { label },
    ...works.flatMap((work, number) => (work.group === label ? [html("option", { value: number }, titled(work))] : [])))));
  draw();
  at("comparison").hidden = !comparison;
  if (comparison) compare(sides, comparison);
  say(sides.map((side) => side.name).join(" beside "));
}

/** The bars of the chosen work: for each contender one of each file. */
function draw() {
  const work = shown.works[at("work").value] ?? { group: "Nothing that has bars was measured", title: "see the report", contenders: [] };
  const most = Math.max(...work.contenders.flatMap((each) => each.bars.map((bar) => bar?.length ?? 0)));
  at("work-title").textContent = `${work.group}: ${work.title}`;
  const tone = (stage) => `var(--${stage.startsWith("stage") ? stage.slice(0, 6) : "quiet"})`;
  replace(at("bars"), work.contenders.map(({ who, stage, bars }) => [html("dt", {}, who),
    bars.map((bar, number) => html("dd", {}, html("span", {}, shown.sides[number].label),
      html("div", {}, bar?.length > 0 && html("i", { style: { width: `calc((100% - 9.5rem) * ${bar.length / most})`, color: tone(stage) } }),
        bar?.text ?? "not measured")))]));
  const emulated = work.contenders.some((each) => each.bars.some((bar) => bar?.length === 0));
  at("caption").textContent = (work.base ? `Longer is faster. “2 times” is twice as fast as ${work.base} in the same run, so two machines can be compared; the time stands behind it.`
    : "Longer is faster; the time stands behind the bar.") + (emulated ? " What was emulated has a time and no bar." : "");
}

/** The table of what differs. */
function compare([mine, other], { warnings, summary, rows }) {
  replace(at("summary"), warnings.map((each) => html("p", { class: "quiet" }, `${each[0].toUpperCase()}${each.slice(1)}.`)),
    html("p", {}, summary));
  const heads = [`${mine.label} is`, "What", "Who", mine.label, other.label, "Change"];
  const row = ([verdict, what, who, ours, theirs, change, reference]) => html("tr", {},
    html("td", { class: { faster: "good", slower: "bad" }[verdict] ?? "quiet" }, verdict), html("td", {}, what, html("small", {}, reference)),
    ...[who, ours, theirs, change].map((each) => html("td", {}, each)));
  replace(at("table"), html("table", {}, html("thead", {}, html("tr", {}, ...heads.map((head) => html("th", { scope: "col" }, head)))),
    html("tbody", {}, ...rows.map(row))));
  at("table").hidden = rows.length === 0;
}

/** The reader's newest file; the first recorded one where there is none, or where it cannot be read. */
async function first() {
  const files = await list();
  const own = files.find((each) => each.group !== "recorded");
  const recorded = files.find((each) => each.group === "recorded");
  const wrong = own && await load(own.code, "nearest");
  if (recorded && (wrong || !own)) await load(recorded.code, "");
  if (wrong) fail(wrong);
}

at("mine").addEventListener("change", () => load(at("mine").value, "nearest"));
at("other").addEventListener("change", () => load(at("mine").value, at("other").value));
at("work").addEventListener("change", draw);
first().catch(fail);
