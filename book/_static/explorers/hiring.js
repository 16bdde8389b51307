/* The two orders in the hiring table. */
import { axes, element, measures, niceTicks, pretty } from "./chart.js";
import { say } from "./controls.js";
import { formulas } from "./formulas.js";

/* The hiring table: the supremum of a mean, and the mean of suprema. */
export function hiring(root, v) {
  const found = formulas.twoGroups(v.share / 100, v.young / 100, v.old / 100, v.similarity);
  const [left, right] = root.querySelectorAll("svg");
  const reach = Math.max(0.2, 1.3 * Math.max(...found.contrasts.map(Math.abs)));
  const a = axes(left, {
    height: 220, x: { from: 0.4, to: 2.6, ticks: [], label: "" },
    y: { from: -reach, to: reach, ticks: niceTicks(reach).flatMap((tick) => (tick ? [-tick, tick] : [0])), label: "contrast of g" },
  });
  found.contrasts.forEach((value, i) => {
    const y = [a.y(0), a.y(value)], x = a.x(i + 1), name = `${i ? "old" : "young"}: ${value >= 0 ? "+" : "−"}${Math.abs(value).toFixed(2)}`;
    element("rect", { x: x - 30, width: 60, y: Math.min(...y), height: Math.max(1, Math.abs(y[0] - y[1])), class: "bar faint" }, left);
    element("text", { x, y: value < 0 ? y[1] + 15 : y[1] - 5, "text-anchor": "middle", class: "number" }, left, name);
  });
  measures(right, [
    ["supremum of the mean, one function for both ages", found.supOfMean, "two"],
    ["√HSIC, between the two", found.rootHsic, "two"],
    ["supremum of the mean, a function for each age", found.glued, "two"],
    ["mean of the suprema, E MMD", found.meanOfSup, "one"],
  ], 0.5, 3);
  root.found = found;
  say(root, {
    sentence: found.meanOfSup < 1e-12 ? "Hiring does not depend on age, and all four numbers are zero." :
      "The last two numbers agree: this is Corollary 3.4. " + (found.rootHsic < 1e-9 ?
        "√HSIC is zero although hiring depends on age: to this kernel all ages are alike." :
        `√HSIC is ${pretty((100 * found.rootHsic) / found.meanOfSup, 2)} % of them, because one norm limits the functions of both ages together.`),
  });
}
