/* Hiring in waves over age, and what HSIC sees of them. */
import { axes, logTicks, percent, pretty } from "./chart.js";
import { dragging, say } from "./controls.js";
import { formulas } from "./formulas.js";

const MOST = 12;

/* Hiring in waves over age: HSIC, the expected squared MMD, and the bound of Theorem 4.5. */
export function waves(root, v, set) {
  const found = formulas.hiringWaves(v.waves, v.bandwidth), [left, right] = root.querySelectorAll("svg");
  const most = found.lambda.slice(0, MOST).filter((x) => x > 1e-12).length, m = Math.min(v.m, most);
  const a = axes(left, {
    x: { from: 20, to: 69, ticks: [20, 30, 40, 50, 60], label: "age" },
    y: { from: 0, to: 1, ticks: [0, 0.5, 1], label: "share of hired people" },
  });
  const points = (values) => found.ages.map((age, i) => [age, Math.max(0, Math.min(1, values[i]))]);
  a.line(points(found.hired), "three");
  a.line(points(found.resolved(m)), "four dashed");
  const low = 1e-8, top = 0.3;
  const b = axes(right, {
    x: { from: 0.4, to: MOST + 0.6, ticks: [1, 2, 4, 6, 8, 10, 12], label: "ℓ, number of the direction" },
    y: { from: low, to: top, log: true, ticks: logTicks(low, top), label: "part" },
  });
  b.band(m + 0.5, MOST + 0.6, "tail");
  const w = ((b.box.right - b.box.left) / (MOST + 0.2)) * 0.36;
  found.energy.slice(0, MOST).forEach((value, l) => {
    b.bar(l + 0.8, w, value, "three");
    b.bar(l + 1.2, w, value * found.lambda[l], "two");
  });
  dragging(right, (px) => set("m", Math.max(1, Math.min(MOST, Math.round(0.4 + ((px - b.box.left) / (b.box.right - b.box.left)) * (MOST + 0.2))))));
  root.found = found;
  say(root, {
    hsic: pretty(found.hsic), squared: pretty(found.squared), bound: pretty(found.bound[m - 1]), tail: pretty(found.tail[m - 1]),
    sentence: `HSIC counts ${pretty((100 * found.hsic) / found.squared, 2)} % of the expected squared MMD. ` +
      `With m = ${m} the bound is ${pretty((100 * found.bound[m - 1]) / found.squared, 3)} % of it, and ${percent(found.tail[m - 1], found.bound[m - 1])} of the bound is the tail, which HSIC does not limit.`,
  });
}
