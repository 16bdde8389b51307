/* How many people a bound needs. */
import { axes, element, pretty, span } from "./chart.js";
import { dragging, say } from "./controls.js";
import { formulas } from "./formulas.js";

/* How many people a bound needs. */
export function samples(root, v, set) {
  const [svg] = root.querySelectorAll("svg"), from = 10, to = 1e7, low = 1e-4, top = 30, names = ["printed", "proved", "root"];
  const a = axes(svg, {
    height: 300, x: { from, to, log: true, ticks: [10, 100, 1e3, 1e4, 1e5, 1e6, 1e7], label: "n, people in the sample" },
    y: { from: low, to: top, log: true, ticks: [1e-4, 1e-3, 0.01, 0.1, 1, 10], label: "upper bound on HSIC" },
  });
  const grid = span(1, 7, 121).map((e) => Math.pow(10, e)), at = (n) => formulas.sampleBounds(v.value, n, v.k, v.delta), now = at(v.n);
  a.level(0.25, "faint dashed");
  element("text", { x: a.box.right - 4, y: a.y(0.25) - 5, "text-anchor": "end" }, svg, "1/4: no bound is needed above");
  a.level(Math.max(low, v.value), "three");
  const kinds = { printed: "two", proved: "four", root: "one" };
  for (const name of names) {
    a.line(grid.map((n) => [n, at(n)[name]]), kinds[name]);
    a.dot(v.n, now[name], kinds[name], 6);
  }
  dragging(svg, (px) => set("n", Math.pow(10, Math.max(1, Math.min(7, 1 + (6 * (px - a.box.left)) / (a.box.right - a.box.left))))));
  const needed = (name) => {
    let less = 1, more = 1e9;
    if (at(more)[name] > 0.25) return "more than a billion";
    while (more - less > 1) { const middle = Math.floor((less + more) / 2); if (at(middle)[name] < 0.25) more = middle; else less = middle; }
    return more.toLocaleString("en-US");
  };
  root.now = now;
  say(root, { printed: pretty(now.printed), proved: pretty(now.proved), root: pretty(now.root), sentence: `A bound below 1/4 needs ${needed("printed")} people with the constants of the paper, ${needed("proved")} with better constants, and ${needed("root")} for the root of HSIC.` });
}
