// Ordinary charts: plotly.js in the studio's colours, light and dark.

import { colour, oncolours, reducedMotion } from "/static/common/draw.js";

let loading = null;

/** plotly.js, loaded when the first chart is drawn: 4 MB that other pages do without. */
function plotly() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = "/static/common/plotly.min.js";
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => reject(new Error("plotly.js could not be loaded; is the package plotly installed?"));
    document.head.append(script);
  });
  return loading;
}

/**
 * Draw a chart into a node, or bring the one that is there up to date.
 *
 * made: a function that returns { data, layout } as plotly.js takes them; it is called again when the colours change,
 * so it asks colour() for them. name: what is seen, for a reader who listens.
 */
export async function chart(node, made, name) {
  const Plotly = await plotly();
  const draw = () => {
    const { data, layout = {} } = made();
    return Plotly.react(node, data, dressed(layout), { responsive: true, displaylogo: false, displayModeBar: false });
  };
  node.setAttribute("role", "img");
  node.setAttribute("aria-label", name);
  if (!node.dataset.drawn) {
    node.dataset.drawn = "yes";
    oncolours(() => node.redraw());
  }
  node.redraw = draw;
  await draw();
}

/** The layout with fonts, grid and grounds of the studio. */
function dressed(layout) {
  const axis = {
    gridcolor: colour("rule"), zerolinecolor: colour("rule"), linecolor: colour("edge"), automargin: true, exponentformat: "power",
  };
  const styled = {
    font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: colour("ink") },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 48, r: 12, t: layout.title ? 40 : 12, b: 40 }, height: 280,
    legend: { orientation: "h", y: 1.12, x: 0 }, hovermode: "x unified",
    hoverlabel: { bgcolor: colour("panel"), bordercolor: colour("edge"), font: { color: colour("ink") } },
    transition: reducedMotion() ? { duration: 0 } : undefined,
    ...layout,
  };
  for (const key of ["xaxis", "yaxis", ...Object.keys(layout).filter((each) => /^[xy]axis\d/.test(each))])
    styled[key] = { ...axis, ...layout[key] };
  return styled;
}
