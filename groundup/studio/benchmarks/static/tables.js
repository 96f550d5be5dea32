// The numbers behind the charts, as tables.

import { html } from "/static/common/draw.js";

const MOST = 300; // rows of a table that are written out

/** The table of measured rows. names: of filters.js; value: what the chart shows. */
export function measured(names, values, value) {
  const shown = [value, ...values.filter((each) => each.name !== value.name)]
    .filter((each) => names.some(({ row }) => row.values[each.name] !== null && row.values[each.name] !== undefined));
  const heads = ["What", "Who", "Numbers", ...shown.map((each) => each.title), "More"];
  const rows = names.map(({ row, what }) => [
    what, row.who, row.dtype,
    ...shown.map((each, at) => ({ number: row.texts[each.name] ?? (at === 0 && row.skipped ? "skipped" : "") })),
    { wide: row.skipped ?? row.more.slice(row.values.seconds === null ? 0 : 1).join("; ") },
  ]);
  return table("Everything that is shown above", heads, rows, 3, shown.length);
}

/** A table for each verdict of a comparison. */
export function compared(groups) {
  return groups.map(({ heading, rows }) => [
    html("h2", {}, `${heading} (${rows.length})`),
    table(heading, ["What", "Who", "Numbers", "old", "new", "new / old", "±", "time", "Times of what"],
      rows.map((row) => [
        row.title, row.contender, row.dtype, { number: row.old }, { number: row.new }, { number: row.factor_text },
        { number: row.noise_text }, { number: row.time }, row.reference,
      ]), 3, 5),
  ]).flat();
}

/** A plain table of texts. */
export function facts(name, heads, rows) {
  return table(name, heads, rows, heads.length, 0);
}

function table(name, heads, rows, first, count) {
  const numeric = (at) => at >= first && at < first + count;
  const cell = (value) => {
    if (value?.number !== undefined) return html("td", { class: "number" }, value.number);
    if (value?.wide !== undefined) return html("td", { class: "wide" }, value.wide);
    return html("td", {}, String(value ?? ""));
  };
  const cut = rows.length > MOST ? html("p", { class: "quiet" }, `The first ${MOST} of ${rows.length} rows. Choose less above.`) : null;
  return html("div", {}, cut, html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": name },
    html("table", {},
      html("thead", {}, html("tr", {}, ...heads.map((head, at) => html("th", { scope: "col", class: numeric(at) && "number" }, head)))),
      html("tbody", {}, ...rows.slice(0, MOST).map((row) => html("tr", {}, ...row.map(cell)))))));
}
