/* What can be promised about scores that do not depend on the groups, once and at every look. */
import { axes, element, pretty, span } from "./chart.js";
import { dragging, say } from "./controls.js";
import { formulas } from "./formulas.js";

/* What can be promised: an estimate, guarantees, and the limit of all guarantees. */
export function promise(root, v, set) {
  const [svg] = root.querySelectorAll("svg"), from = 50, to = 1e6, groups = Math.round(v.groups), looks = Math.round(v.looks);
  const a = axes(svg, {
    height: 300, x: { from, to, log: true, ticks: [100, 1e3, 1e4, 1e5, 1e6], label: "n, people" },
    y: { from: 3e-4, to: 0.6, log: true, ticks: [0.001, 0.01, 0.1, 0.5], label: "GDP" },
  });
  const low = Math.log10(from), high = Math.log10(to), grid = span(low, high, 81).map((e) => Math.pow(10, e));
  const at = (n) => formulas.promised(n, groups, looks), now = at(v.n), kinds = { estimate: "three", once: "faint", divided: "two", always: "one", limit: "four dashed" };
  a.level(0.5, "faint dashed");
  element("text", { x: a.box.right - 4, y: a.y(0.5) - 5, "text-anchor": "end" }, svg, "1/2: always true");
  for (const name of Object.keys(kinds)) a.line(grid.map((n) => [n, at(n)[name]]), kinds[name]);
  for (const name of ["estimate", "divided", "always"]) a.dot(v.n, now[name], kinds[name], 6);
  dragging(svg, (px) => set("n", Math.pow(10, Math.max(low, Math.min(high, low + ((high - low) * (px - a.box.left)) / (a.box.right - a.box.left))))));
  const best = now.always < now.divided ? "one guarantee for all looks" : "a guarantee for each look, with its part of δ";
  const often = looks === 1 ? "For one look" : `For ${looks} looks`;
  root.now = now;
  say(root, {
    estimate: pretty(now.estimate), once: pretty(now.once), divided: pretty(now.divided), always: pretty(now.always), limit: pretty(now.limit),
    sentence: `The true GDP is 0. ${often} at ${Math.round(v.n).toLocaleString("en-US")} people, the smaller promise is ${best}.`,
  });
}
