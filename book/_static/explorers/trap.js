/* The kernel trap. */
import { axes, niceTicks, pretty, span } from "./chart.js";
import { dragging, say } from "./controls.js";
import { formulas } from "./formulas.js";

const MEDIAN = 0.9538725524; // median |z − z'| of two standard normal numbers: √2·Φ⁻¹(3/4)

export function trap(root, v, set) {
  const [left, right] = root.querySelectorAll("svg");
  const sigma = (ratio) => MEDIAN / ratio; // spread of Z fixed at one: only the ratio counts
  const grid = span(-2, 2.5, 136).map((e) => Math.pow(10, e));
  const penalty = grid.map((r) => [r, formulas.hsic(v.rho, sigma(r), 1)]);
  const pull = grid.map((r) => [r, formulas.hsicSlope(v.rho, sigma(r), 1)]);
  const high = Math.max(1e-9, ...penalty.map((p) => p[1]), ...pull.map((p) => p[1])) * 1.1;
  const a = axes(left, {
    x: { from: 0.01, to: Math.pow(10, 2.5), log: true, ticks: [0.01, 0.1, 1, 10, 100], label: "median |z − z′| / σ_Z" },
    y: { from: 0, to: high, ticks: niceTicks(high), label: "HSIC, and its slope in ρ" },
  });
  a.band(1 / 3, 3, "safe");
  a.line(penalty, "two");
  a.line(pull, "one dashed");
  a.line([[v.ratio, 0], [v.ratio, high]], "cursor");
  const now = formulas.hsic(v.rho, sigma(v.ratio), 1), slope = formulas.hsicSlope(v.rho, sigma(v.ratio), 1);
  a.dot(v.ratio, now, "two");
  a.dot(v.ratio, slope, "one");
  dragging(left, (px) => set("ratio", Math.pow(10, Math.max(-2, Math.min(2.5, -2 + (4.5 * (px - a.box.left)) / (a.box.right - a.box.left))))));

  const reach = 4.2;
  const b = axes(right, {
    x: { from: 0, to: reach, ticks: [0, 1, 2, 3, 4], label: "distance |z − z′|, Z of unit spread" },
    y: { from: 0, to: 1.05, ticks: [0, 0.5, 1], label: "kernel" },
  });
  b.line(span(0, reach, 140).map((d) => [d, Math.exp((-d * d) / 4)]), "faint");
  b.line(span(0, 1, 240).map((t) => reach * t * t).map((d) => [d, Math.exp((-d * d) / (2 * sigma(v.ratio) ** 2))]), "four");
  const same = formulas.hsic(v.rho, sigma(1), 1);
  say(root, {
    ratio: pretty(v.ratio, 2), penalty: pretty(now), pull: pretty(slope), rho: pretty(v.rho),
    share: same === 0 ? "–" : `${pretty((100 * now) / same, 2)} %`, floor: pretty(formulas.floor(sigma(v.ratio), 1, 256)),
    state: v.ratio > 3 ? "The distances in Z are much larger than the bandwidth, so the kernel is near zero for almost every pair of people. The floor of a biased batch is then larger than the penalty: an optimizer sees only noise." :
      v.ratio < 1 / 3 ? "The distances in Z are much smaller than the bandwidth, so the kernel is near one for every pair of people." :
      "The bandwidth fits the spread of Z.",
  });
}
