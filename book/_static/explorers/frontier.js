/* Frontiers and ranks of methods. */
import { axes, element, niceTicks, pretty } from "./chart.js";
import { say } from "./controls.js";
import { formulas } from "./formulas.js";

/* Selects that depend on the source of the runs: keep the choice where it still exists. */
function offer(root, name, options) {
  const select = root.querySelector(`select[name="${name}"]`), before = select.value;
  select.replaceChildren(...Object.entries(options).map(([key, text]) => new Option(text, key)));
  if (before in options) select.value = before;
  return select.value;
}

export function frontier(root, v) {
  const all = root.data, data = all.sources[v.source];
  if (root.source !== v.source) {
    root.source = v.source;
    const named = (keys, names) => Object.fromEntries(keys.map((key) => [key, names[key]]));
    v.dataset = offer(root, "dataset", named(Object.keys(data.datasets), all.titles));
    v.metric = offer(root, "metric", data.metrics);
    v.method = offer(root, "method", named(Object.keys(data.datasets[v.dataset].methods), all.names));
  }
  const set = data.datasets[v.dataset], higher = set.higher, metric = v.metric;
  const unfair = set.unfair, methods = Object.keys(set.methods);
  const shared = methods.map((name) => new Set(set.methods[name].map((p) => p.lam))).reduce((a, b) => new Set([...a].filter((l) => b.has(l))));
  const text = new Set(all.text_grid);
  const keep = (p) => (v.grid === "all" ? true : v.grid === "common" ? shared.has(p.lam) : text.has(p.lam) && shared.has(p.lam));
  const sign = higher ? 1 : -1;
  const kept = {};
  for (const name of methods) kept[name] = set.methods[name].filter((p) => keep(p) && p[metric] !== null);
  const every = methods.flatMap((name) => kept[name]).concat([unfair]);
  const comparable = unfair[metric] > 0; // the area is measured in units of the model without a penalty
  const utilities = every.map((p) => sign * p.perf), least = Math.min(...utilities), most = Math.max(...utilities);
  const place = (p) => ({ u: most > least ? (sign * p.perf - least) / (most - least) : 0, g: p[metric] / unfair[metric] });
  const rows = methods.map((name) => {
    const points = kept[name].map(place).map((p) => ({ u: p.u, g: Math.max(0, Math.min(1, p.g)) }));
    return { name, points: kept[name], area: comparable ? formulas.areaUnderEnvelope(points) : 0 };
  });
  if (comparable) rows.sort((p, q) => q.area - p.area);

  const svg = root.querySelector("svg");
  const right = Math.max(...every.map((p) => p[metric])) * 1.08 || 1, low = Math.min(...every.map((p) => p.perf)), top = Math.max(...every.map((p) => p.perf));
  const pad = (top - low) * 0.06 || 0.01;
  const from = low - pad, to = top + pad;
  const step = niceTicks(to - from)[1] || to - from, ticks = [];
  for (let tick = Math.ceil(from / step) * step; tick <= to; tick += step) ticks.push(Number(tick.toPrecision(6)));
  const a = axes(svg, {
    height: 340,
    x: { from: 0, to: right, ticks: niceTicks(right), label: data.metrics[metric] },
    y: { from, to, ticks, label: higher ? "accuracy" : "mean squared error" },
  });
  const chosen = kept[v.method] ? v.method : rows[0].name;
  const draw = (name, p, r) => {
    const dot = a.dot(p[metric], p.perf, "method", r);
    dot.style.fill = all.colors[name];
    element("title", {}, dot, `${all.names[name]}, λ = ${p.lam}: ${pretty(p.perf)} at ${pretty(p[metric])}`);
    return dot;
  };
  for (const row of rows) if (row.name !== chosen) for (const p of row.points) draw(row.name, p, 3).style.opacity = 0.55;
  const mine = kept[chosen].slice().sort((p, q) => p.lam - q.lam);
  a.line(mine.map((p) => [p[metric], p.perf]), "method").style.stroke = all.colors[chosen];
  for (const p of mine) {
    const sd = { x: p[`${metric}_sd`], y: p.perf_sd };
    if (sd.x) a.line([[Math.max(0, p[metric] - sd.x), p.perf], [Math.min(right, p[metric] + sd.x), p.perf]], "spread");
    if (sd.y) a.line([[p[metric], p.perf - sd.y], [p[metric], p.perf + sd.y]], "spread");
    draw(chosen, p, 5);
  }
  root.style.setProperty("--chosen", all.colors[chosen]);
  element("title", {}, a.dot(unfair[metric], unfair.perf, "four", 6), "without a penalty");

  const body = root.querySelector("tbody");
  body.replaceChildren();
  rows.forEach((row, i) => {
    const line = body.insertRow();
    if (row.name === chosen) line.className = "chosen";
    const cells = [comparable ? i + 1 : "–", all.names[row.name], comparable ? row.area.toFixed(3) : "–", row.points.length];
    for (const text of cells) line.insertCell().textContent = text;
    const swatch = document.createElement("span");
    swatch.className = "swatch";
    swatch.style.background = all.colors[row.name];
    line.cells[1].prepend(swatch);
  });
  const counts = new Set(rows.map((row) => row.points.length));
  say(root, {
    rank: comparable ? `${rows.findIndex((row) => row.name === chosen) + 1} of ${rows.length}` : "none", perf: higher ? "accuracy" : "mean squared error, lower is better",
    note: !comparable ? "This measure is zero for the model without a penalty, so the methods cannot be ranked by it." : counts.size > 1 ? "The grids differ: an area can only grow with the number of λ, so these ranks are not a fair comparison." : "All methods have the same λ.",
  });
}
