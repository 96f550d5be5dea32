// The page Benchmarks: a file is chosen, its rows are filtered, and a chart and a table show what is left.

import { fail, get, post, say, settle } from "/static/common/api.js";
import { chart } from "/static/common/chart.js";
import { html, replace } from "/static/common/draw.js";
import { choices, chosen, named, offer } from "/static/benchmarks/filters.js";
import * as figures from "/static/benchmarks/figures.js";
import * as tables from "/static/benchmarks/tables.js";

const LARGEST = 15 * 2 ** 20; // bytes of a file that the studio takes
const WIDE = 30; // things beside each other on a chart, above which one size is chosen at first

const at = (id) => document.getElementById(id);
const state = { results: null, comparison: null, stages: null, file: "" };

/** Which files there are. wanted: the code of the one to choose. */
async function list(wanted) {
  const { groups, files } = await get("/api/benchmarks/files");
  const options = (found) => Object.entries(groups).flatMap(([group, title]) => {
    const mine = found.filter((each) => each.group === group);
    return mine.length ? [html("optgroup", { label: title }, ...mine.map((each) =>
      html("option", { value: each.code, disabled: each.old }, each.name)))] : [];
  });
  const usable = files.filter((each) => !each.old);
  replace(at("file"), ...options(files));
  replace(at("old"), html("option", { value: "" }, "nothing"), ...options(files));
  const first = usable.find((each) => each.group === "given") ?? usable.find((each) => each.group === "recorded") ?? usable[0];
  at("file").value = wanted ?? first?.code ?? "";
  if (!usable.length) replace(at("about"), html("p", {}, "There is no results file yet. ", html("code", {}, "groundup race"),
    " writes one into the folder runs; or open one above."));
  return usable.length > 0;
}

/** Read the chosen file, and the one to compare it with. */
async function load() {
  const [file, old] = [at("file").value, at("old").value];
  if (!file) return;
  try {
    const [results, comparison] = await Promise.all([
      get("/api/benchmarks/results", { file }),
      old && old !== file ? get("/api/benchmarks/compare", { old, new: file }) : null,
    ]);
    Object.assign(state, { results, comparison, file });
    if (comparison) comparison.rows = comparison.groups.flatMap((group) => 
      group.rows.map((row) => ({ ...row, verdict: group.verdict, heading: group.heading })));
    settle();
  } catch (error) {
    fail(error);
    if (state.file) at("file").value = state.file;
    at("old").value = "";
    return;
  }
  begin();
  await show();
}

/** What the filters offer for a new file. */
function begin() {
  const { results, comparison } = state;
  const { kinds } = comparison ?? results;
  offer(at("kind"), kinds.map((each) => ({ value: each.name, text: each.title })), comparison ? "everything" : null, comparison ? "" : undefined);
  const boxes = results.stages.map((each) => html("label", { class: "check" },
    html("input", { type: "checkbox", value: each.name, checked: true, onchange: () => show() }), each.title));
  const emulated = !comparison && results.points.some((each) => each.emulated);
  const extra = emulated ? html("label", { class: "check" },
    html("input", { type: "checkbox", id: "emulated", onchange: () => show() }), "the emulator's times, too") : null;
  replace(at("stages"), html("legend", {}, "Stages"), boxes, extra);
  at("filters").hidden = !kinds.length;
  at("value-label").hidden = Boolean(comparison);
  narrow("kind");
  about();
  curves();
}

/** After a choice, offer what it leaves for the others. */
function narrow(changed) {
  const all = state.comparison?.rows ?? state.results.points;
  const order = ["kind", "operation", "size", "dtype"];
  const choice = {};
  for (const name of order) {
    if (name !== "kind") {
      const found = choices(chosen(all, choice), name);
      const fresh = changed === "kind";
      const large = fresh && name === "size" && !state.comparison && new Set(chosen(all, choice).map((row) => row.operation + row.size)).size > WIDE;
      const first = large ? found[0].value : name === "dtype" && !state.comparison ? widest(chosen(all, choice)) : "";
      offer(at(name), found, name === "dtype" ? "every type" : `every ${name}`, fresh ? first : undefined);
    }
    choice[name] = at(name).value;
  }
  if (state.comparison) return;
  const rows = chosen(all, choice);
  const found = state.results.values.filter((value) => rows.some((row) => row.values[value.name] !== null));
  offer(at("value"), found.map((each) => ({ value: each.name, text: each.title })), null);
}

/** The type of numbers that most of the stages were measured with. */
function widest(rows) {
  const count = (dtype) => new Set(rows.filter((row) => row.dtype === dtype).map((row) => row.stage)).size;
  return [...new Set(rows.map((row) => row.dtype))].reduce((best, each) => (count(each) > count(best) ? each : best));
}

function choice() {
  const stages = new Set([...at("stages").querySelectorAll("input[value]:checked")].map((box) => box.value));
  return { stages, ...Object.fromEntries(["kind", "operation", "size", "dtype"].map((name) => [name, at(name).value])) };
}

/** Draw what the filters leave. */
async function show() {
  const { results, comparison } = state;
  const node = at("chart");
  at("figure").hidden = false;
  const width = at("figure").clientWidth;
  if (comparison) {
    const rows = chosen(comparison.rows, choice());
    const groups = comparison.groups.map(({ heading }) => ({ heading, rows: rows.filter((row) => row.heading === heading) }));
    const drawn = rows.slice(0, figures.room(width)).map((row) => ({ row }));
    at("figure").hidden = rows.length === 0;
    if (rows.length) await chart(node, () => figures.compared(drawn, width), `New divided by old of ${drawn.length} measurements; the tables below have the numbers`);
    replace(at("caption"), drawn.length < rows.length ? `The first ${drawn.length} of ${rows.length}; the tables have all. ` : "",
      "A dot left of the line is faster in the newer file. The bars say how far it may be off by chance.");
    replace(at("tables"), tables.compared(groups.filter((group) => group.rows.length)));
    say(`${rows.length} measurements compared`);
    return;
  }
  const rows = chosen(results.points, choice());
  const names = named(rows);
  const value = results.values.find((each) => each.name === at("value").value) ?? results.values[0];
  const emulated = at("emulated")?.checked ?? false;
  const drawn = names.filter(({ row }) => row.values[value.name] > 0 && (emulated || !row.emulated));
  at("figure").hidden = drawn.length === 0;
  const title = at("kind").selectedOptions[0]?.text ?? "";
  if (drawn.length) await chart(node, () => figures.measured(drawn, value, width), `${title}: ${value.title} of ${drawn.length} measurements; the table below has the numbers`);
  const left = names.length - drawn.length;
  replace(at("caption"), `${title}: ${value.title}. Point at a dot for more about it.`,
    left ? ` ${left} of the table's rows are not drawn: they were skipped, have no such number, or are the emulator's.` : "");
  replace(at("tables"), names.length ? tables.measured(names, results.values, value) : html("p", {}, "Nothing is left: choose a stage above."));
  say(`${names.length} measurements`);
}

/** The lines above the filters: whose numbers these are. */
function about() {
  const { results, comparison } = state;
  if (!comparison) {
    replace(at("about"), html("p", { class: "quiet" }, [results.origin, results.command, results.passes].filter(Boolean).join(" · ")),
      results.notes.map((note) => html("p", { class: "quiet" }, note)));
    return;
  }
  const counts = Object.entries(comparison.counts).map(([verdict, count]) => `${count} ${verdict}`).join(", ");
  const total = Object.values(comparison.counts).reduce((sum, each) => sum + each, 0);
  replace(at("about"),
    html("p", {}, `old: ${comparison.names[0]}: ${comparison.origins[0]}`), html("p", {}, `new: ${comparison.names[1]}: ${comparison.origins[1]}`),
    comparison.warnings.map((each) => html("p", { class: "bad" }, `Warning: ${each}.`)),
    html("p", {}, total ? `Of ${total} measured in both: ${counts}.` : "Nothing was measured in both."),
    comparison.machines.length ? html("details", {}, html("summary", {}, `What else differs (${comparison.machines.length})`),
      tables.facts("What else differs", ["fact", "old", "new"], comparison.machines)) : null,
    ["old", "new"].map((which, number) => comparison.only[number].length ? html("details", {},
      html("summary", {}, `Only in the ${which} file (${comparison.only[number].length})`),
      html("ul", {}, ...comparison.only[number].map((name) => html("li", {}, name)))) : null));
}

/** The curves of the trainings, and what was guessed beforehand. */
function curves() {
  const { results, comparison } = state;
  const found = comparison ? [] : results.curves;
  at("curves").hidden = found.length === 0;
  for (const name of found.length ? ["loss", "accuracy"] : [])
    chart(at(name), () => figures.trained(found, name), `Training curves: ${name} over the seconds of training of ${found.length} trainings`).catch(fail);
  const guesses = comparison ? [] : results.predictions;
  replace(at("further"), guesses.length ? [html("h2", {}, "Guessed, and measured"), tables.facts("Guesses", ["question", "guess", "measured"],
    guesses.map((each) => [each.question, each.guess === null ? "-" : `${each.guess} ${each.unit}`, `${each.measured} ${each.unit}`]))] : null);
}

/** A file of the reader's own. */
async function open() {
  const [file] = at("open").files;
  if (!file) return;
  try {
    if (file.size > LARGEST) throw new Error(`${file.name}: a results file of up to ${LARGEST >> 20} MiB can be opened here`);
    const entry = await post("/api/benchmarks/open", { name: file.name, text: await file.text() });
    await list(entry.code);
    at("old").value = "";
    await load();
  } catch (error) {
    fail(error);
  }
  at("open").value = "";
}

for (const id of ["file", "old"]) at(id).addEventListener("change", load);
for (const id of ["kind", "operation", "size", "dtype"]) at(id).addEventListener("change", () => { narrow(id); show().catch(fail); });
at("value").addEventListener("change", () => show().catch(fail));
at("open").addEventListener("change", open);
list().then((any) => any && load()).catch(fail);
