/* Four people and the bound for a head. */
import { axes, logTicks, percent, pretty } from "./chart.js";
import { say } from "./controls.js";
import { formulas } from "./formulas.js";

/* Four people and their scores: the sides of Theorem 4.7. */
export function people(root, v) {
  const scores = [v.first, v.second, v.third, v.fourth], found = formulas.fourPeople(scores), [left, right] = root.querySelectorAll("svg");
  const a = axes(left, {
    x: { from: 17, to: 53, ticks: [20, 30, 40, 50], label: "age" }, y: { from: 0, to: 1, ticks: [0, 0.5, 1], label: "score" },
  });
  a.level(found.center, "faint");
  a.line(found.resolved[v.m - 1].map((x, i) => [20 + 10 * i, Math.max(0, Math.min(1, found.center + x))]), "one dashed");
  scores.forEach((score, i) => a.dot(20 + 10 * i, score, "three", 7));
  const top = Math.max(0.02, ...found.bound) * 1.3, low = top / 1000;
  const b = axes(right, {
    x: { from: 0.5, to: 3.5, ticks: [1, 2, 3], label: "m, directions of age" },
    y: { from: low, to: top, log: true, ticks: logTicks(low, top), label: "mean square" },
  });
  b.level(found.variance, "faint dashed");
  const chain = [["absolute", "four"], ["square", "one"], ["bound", "two"]];
  chain.forEach(([name, kind]) => {
    b.line(found[name].map((x, i) => [i + 1, x]), kind);
    found[name].forEach((x, i) => b.dot(i + 1, x, kind, i + 1 === v.m ? 7 : 4));
  });
  root.found = found;
  say(root, {
    absolute: pretty(found.absolute[v.m - 1]), square: pretty(found.square[v.m - 1]), bound: pretty(found.bound[v.m - 1]), variance: pretty(found.variance),
    sentence: found.variance < 1e-12 ? "All scores are equal, and every side is zero." : found.bound[v.m - 1] > found.variance ?
      `With m = ${v.m} the bound is above the variance of the scores, which needs no theorem: it says nothing.` :
      `With m = ${v.m} the bound is below the variance of the scores. It limits ${v.m === 1 ? "one direction" : `${v.m} directions`} of age, in which ${percent(found.square[v.m - 1], found.variance)} of this variance lies.`,
  });
}
