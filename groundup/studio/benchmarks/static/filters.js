// Which rows of a file are shown: by what was measured, the stages, the operation, the size and the numbers' type.

/** Every choice of a list of rows, in the order in which they come: [{ value, text }]. */
export function choices(rows, name) {
  return [...new Set(rows.map((row) => row[name]).filter((each) => each))].map((each) => ({ value: each, text: each }));
}

/** The rows that a choice { kind, stages, operation, size, dtype } leaves; "" leaves everything. */
export function chosen(rows, choice) {
  const one = (row, name) => !choice[name] || row[name] === choice[name];
  return rows.filter((row) => ["kind", "operation", "size", "dtype"].every((name) => one(row, name))
    && (!choice.stages || choice.stages.has(row.stage)));
}

/**
 * How each row is called among these: what it is, and who did it. What all rows have in common is left out.
 * Returns [{ row, what, who }].
 */
export function named(rows) {
  const several = (name) => new Set(rows.map((row) => row[name])).size > 1;
  const [operations, sizes, types] = ["operation", "size", "dtype"].map(several);
  return rows.map((row) => ({
    row,
    what: [operations && row.operation, sizes && row.size].filter(Boolean).join(", ") || row.operation || row.size,
    who: types ? `${row.who}, ${row.dtype}` : row.who,
  }));
}

/** Fill a <select> with choices, `all` first; the value that was chosen stays if it is still there. */
export function offer(select, found, all, wanted = select.value) {
  const options = all === null ? found : [{ value: "", text: all }, ...found];
  select.replaceChildren(...options.map((each) => new Option(each.text, each.value)));
  if (options.some((each) => each.value === wanted)) select.value = wanted;
  select.disabled = options.length < 2 || (all !== null && found.length < 2);
}
