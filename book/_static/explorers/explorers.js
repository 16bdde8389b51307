/* The moving pictures: plain SVG drawn at the width of its box, coloured by the theme's variables, driven by native inputs. */
(function () {
  "use strict";
  const F = frhsicFormulas;
  const SVG = "http://www.w3.org/2000/svg";
  const pretty = (value, digits) => {
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 0.001 && size < 1000) return Number(value.toPrecision(digits || 3)).toString();
    const [mantissa, exponent] = value.toExponential(1).split("e");
    return `${mantissa === "1.0" ? "" : `${mantissa}·`}10${[...String(Number(exponent))].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]).join("")}`;
  };

  function element(name, attributes, parent, text) {
    const node = document.createElementNS(SVG, name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (text !== undefined) node.textContent = text;
    if (parent) parent.appendChild(node);
    return node;
  }

  /* Text with a subscript after each underscore: σ_Z. */
  function named(node, text) {
    text.split(/_(.)/).forEach((part, i) => {
      if (part) element("tspan", i % 2 ? { dy: "0.25em", "font-size": "0.75em" } : i ? { dy: "-0.19em" } : {}, node, part);
    });
    return node;
  }

  /* One pair of axes. scale: {from, to, log}; returns x(), y() and drawing functions. */
  function axes(svg, options) {
    const width = Math.max(260, svg.parentNode.clientWidth), height = options.height || 260;
    const box = { left: options.y.label ? 66 : 52, right: width - 10, top: 12, bottom: height - 40 };
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("width", width);
    svg.setAttribute("height", height);
    const map = (scale, a, b) => {
      const t = scale.log ? Math.log10 : (v) => v;
      return (v) => a + ((t(v) - t(scale.from)) / (t(scale.to) - t(scale.from))) * (b - a);
    };
    const x = map(options.x, box.left, box.right), y = map(options.y, box.bottom, box.top);
    const clampY = (v) => Math.max(box.top - 2, Math.min(box.bottom, y(options.y.log ? Math.max(v, 1e-300) : v)));
    const frame = element("g", { class: "axis" }, svg);
    element("path", { d: `M${box.left} ${box.top}V${box.bottom}H${box.right}` }, frame);
    for (const tick of options.x.ticks) {
      element("line", { x1: x(tick), x2: x(tick), y1: box.bottom, y2: box.bottom + 4 }, frame);
      element("text", { x: x(tick), y: box.bottom + 17, "text-anchor": "middle" }, frame, pretty(tick));
    }
    for (const tick of options.y.ticks) {
      element("line", { x1: box.left, x2: box.right, y1: y(tick), y2: y(tick), class: "grid" }, frame);
      element("text", { x: box.left - 5, y: y(tick) + 4, "text-anchor": "end" }, frame, pretty(tick));
    }
    named(element("text", { x: (box.left + box.right) / 2, y: height - 6, "text-anchor": "middle" }, frame), options.x.label);
    if (options.y.label) named(element("text", { x: -(box.top + box.bottom) / 2, y: 12, "text-anchor": "middle", transform: "rotate(-90)" }, frame), options.y.label);
    return {
      box, x, y,
      line(points, name) {
        const d = points.map(([a, b], i) => `${i ? "L" : "M"}${x(a).toFixed(1)} ${clampY(b).toFixed(1)}`).join("");
        return element("path", { d, class: `line ${name}` }, svg);
      },
      level(value, name) {
        return element("line", { x1: box.left, x2: box.right, y1: clampY(value), y2: clampY(value), class: `line ${name}` }, svg);
      },
      bar(a, w, value, name) {
        const top = clampY(value);
        return element("rect", { x: x(a) - w / 2, width: w, y: top, height: Math.max(0, box.bottom - top), class: `bar ${name}` }, svg);
      },
      dot(a, b, name, r) {
        return element("circle", { cx: x(a), cy: clampY(b), r: r || 5, class: `dot ${name}` }, svg);
      },
      band(a, b, name) {
        const left = Math.max(box.left, x(a)), right = Math.min(box.right, x(b));
        return element("rect", { x: left, width: Math.max(0, right - left), y: box.top, height: box.bottom - box.top, class: name }, svg);
      },
    };
  }

  const logTicks = (from, to) => {
    const first = Math.ceil(Math.log10(from) - 1e-9), last = Math.floor(Math.log10(to) + 1e-9), step = Math.ceil((last - first) / 5) || 1;
    const ticks = [];
    for (let e = first; e <= last; e += step) ticks.push(Math.pow(10, e));
    return ticks;
  };
  const niceTicks = (to) => {
    const raw = to / 4, unit = Math.pow(10, Math.floor(Math.log10(raw)));
    const step = [1, 2, 2.5, 5, 10].find((k) => k * unit >= raw) * unit;
    return Array.from({ length: Math.floor(to / step + 1e-9) + 1 }, (_, i) => Number((i * step).toPrecision(6)));
  };
  const span = (from, to, n) => Array.from({ length: n }, (_, i) => from + ((to - from) * i) / (n - 1));

  /* Inputs of one explorer by name; data-scale="log" means that the slider moves the exponent. */
  function controls(root, draw) {
    const inputs = {};
    let waiting = false;
    const later = () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; root.update(); });
    };
    const read = () => {
      const values = {};
      for (const name in inputs) {
        const input = inputs[name];
        let value = input.tagName === "SELECT" ? input.value : Number(input.value);
        if (input.dataset.scale === "log") value = Number(Math.pow(10, value).toPrecision(2)); // as it is shown
        values[name] = value;
        const output = root.querySelector(`output[for="${input.id}"]`);
        if (output) {
          const text = pretty(value, input.dataset.scale === "log" ? 2 : 3);
          output.textContent = text;
          input.setAttribute("aria-valuetext", text);
        }
      }
      return values;
    };
    root.querySelectorAll("input, select").forEach((input) => {
      inputs[input.name] = input;
      input.addEventListener("input", later);
    });
    const key = (name) => `${root.dataset.explorer}.${name}`;
    const start = Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, input.value]));
    /* The address of the page carries what differs from the start, so that a setting can be linked to. */
    const note = () => {
      const query = new URLSearchParams(location.search);
      for (const name in inputs) {
        if (inputs[name].value === start[name]) query.delete(key(name));
        else query.set(key(name), inputs[name].value);
      }
      const text = query.toString();
      try { history.replaceState(null, "", `${location.pathname}${text && `?${text}`}${location.hash}`); } catch { /* a page opened as a file has no address to change */ }
    };
    const set = (name, value) => {
      inputs[name].value = inputs[name].dataset.scale === "log" ? Math.log10(value) : value;
      later();
    };
    const reset = () => {
      for (const name in inputs) inputs[name].value = start[name];
      if (root.restart) root.restart();
      later();
    };
    root.update = () => { draw(root, read(), set); note(); };
    root.querySelectorAll("button[data-set]").forEach((button) => {
      button.onclick = () => {
        reset();
        Object.entries(JSON.parse(button.dataset.set)).forEach(([name, value]) => set(name, value));
      };
    });
    root.querySelector("button[data-reset]").onclick = reset;
    const asked = new URLSearchParams(location.search);
    const restore = () => { for (const name in inputs) if (asked.has(key(name))) inputs[name].value = asked.get(key(name)); };
    restore();
    if (asked.has(key("source"))) { draw(root, read(), set); restore(); } // the choices depend on the source
    new ResizeObserver(later).observe(root);
  }

  function say(root, values) {
    for (const name in values) {
      const place = root.querySelector(`[data-value="${name}"]`);
      if (place && place.textContent !== values[name]) place.textContent = values[name];
    }
  }

  /* Pointer on a chart sets a value: press or drag. */
  function dragging(svg, pick) {
    const move = (event) => {
      const place = svg.getBoundingClientRect();
      pick((event.clientX - place.left) * (svg.viewBox.baseVal.width / place.width));
    };
    svg.onpointerdown = (event) => { svg.setPointerCapture(event.pointerId); move(event); };
    svg.onpointermove = (event) => { if (event.buttons) move(event); };
  }

  /* Horizontal bars: [words, value, color, value at the full length], with a number at the end of each. */
  function measures(svg, rows, most = 1, digits = 2) {
    const width = Math.max(260, svg.parentNode.clientWidth), tall = 52;
    svg.replaceChildren();
    for (const [key, value] of Object.entries({ viewBox: `0 0 ${width} ${tall * rows.length}`, width, height: tall * rows.length })) svg.setAttribute(key, value);
    rows.forEach(([name, value, kind, end = most], i) => {
      element("text", { x: 0, y: tall * i + 14 }, svg, name);
      element("rect", { x: 0, y: tall * i + 20, width: Math.max(1, (width - 58) * Math.min(1, value / end)), height: 13, class: `bar ${kind}` }, svg);
      element("text", { x: width, y: tall * i + 31, "text-anchor": "end", class: "number" }, svg, value.toFixed(digits));
    });
  }

  const percent = (part, whole) => {
    const share = (100 * part) / whole;
    return `${share > 99 && share < 100 ? "more than 99" : share > 0 && share < 1 ? "less than 1" : share.toFixed(0)} %`;
  };

  /* The hiring table: the supremum of a mean, and the mean of suprema. */
  function hiring(root, v) {
    const found = F.twoGroups(v.share / 100, v.young / 100, v.old / 100, v.similarity);
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

  const MOST = 12;

  /* Hiring in waves over age: HSIC, the expected squared MMD, and the bound of Theorem 4.5. */
  function waves(root, v, set) {
    const found = F.hiringWaves(v.waves, v.bandwidth), [left, right] = root.querySelectorAll("svg");
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

  /* Four people and their scores: the sides of Theorem 4.7. */
  function people(root, v) {
    const scores = [v.first, v.second, v.third, v.fourth], found = F.fourPeople(scores), [left, right] = root.querySelectorAll("svg");
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

  /* How many people a bound needs. */
  function samples(root, v, set) {
    const [svg] = root.querySelectorAll("svg"), from = 10, to = 1e7, low = 1e-4, top = 30, names = ["printed", "proved", "root"];
    const a = axes(svg, {
      height: 300, x: { from, to, log: true, ticks: [10, 100, 1e3, 1e4, 1e5, 1e6, 1e7], label: "n, people in the sample" },
      y: { from: low, to: top, log: true, ticks: [1e-4, 1e-3, 0.01, 0.1, 1, 10], label: "upper bound on HSIC" },
    });
    const grid = span(1, 7, 121).map((e) => Math.pow(10, e)), at = (n) => F.sampleBounds(v.value, n, v.k, v.delta), now = at(v.n);
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

  const MEDIAN = 0.9538725524; // median |z − z'| of two standard normal numbers: √2·Φ⁻¹(3/4)

  function trap(root, v, set) {
    const [left, right] = root.querySelectorAll("svg");
    const sigma = (ratio) => MEDIAN / ratio; // spread of Z fixed at one: only the ratio counts
    const grid = span(-2, 2.5, 136).map((e) => Math.pow(10, e));
    const penalty = grid.map((r) => [r, F.hsic(v.rho, sigma(r), 1)]);
    const pull = grid.map((r) => [r, F.hsicSlope(v.rho, sigma(r), 1)]);
    const high = Math.max(1e-9, ...penalty.map((p) => p[1]), ...pull.map((p) => p[1])) * 1.1;
    const a = axes(left, {
      x: { from: 0.01, to: Math.pow(10, 2.5), log: true, ticks: [0.01, 0.1, 1, 10, 100], label: "median |z − z′| / σ_Z" },
      y: { from: 0, to: high, ticks: niceTicks(high), label: "HSIC, and its slope in ρ" },
    });
    a.band(1 / 3, 3, "safe");
    a.line(penalty, "two");
    a.line(pull, "one dashed");
    a.line([[v.ratio, 0], [v.ratio, high]], "cursor");
    const now = F.hsic(v.rho, sigma(v.ratio), 1), slope = F.hsicSlope(v.rho, sigma(v.ratio), 1);
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
    const same = F.hsic(v.rho, sigma(1), 1);
    say(root, {
      ratio: pretty(v.ratio, 2), penalty: pretty(now), pull: pretty(slope), rho: pretty(v.rho),
      share: same === 0 ? "–" : `${pretty((100 * now) / same, 2)} %`, floor: pretty(F.floor(sigma(v.ratio), 1, 256)),
      state: v.ratio > 3 ? "The distances in Z are much larger than the bandwidth, so the kernel is near zero for almost every pair of people. The floor of a biased batch is then larger than the penalty: an optimizer sees only noise." :
        v.ratio < 1 / 3 ? "The distances in Z are much smaller than the bandwidth, so the kernel is near one for every pair of people." :
        "The bandwidth fits the spread of Z.",
    });
  }

  /* Selects that depend on the source of the runs: keep the choice where it still exists. */
  function offer(root, name, options) {
    const select = root.querySelector(`select[name="${name}"]`), before = select.value;
    select.replaceChildren(...Object.entries(options).map(([key, text]) => new Option(text, key)));
    if (before in options) select.value = before;
    return select.value;
  }

  function frontier(root, v) {
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
      return { name, points: kept[name], area: comparable ? F.areaUnderEnvelope(points) : 0 };
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

  function representation(root, v) {
    const data = root.data, { paper, recommended } = data.forms, reach = 320, names = Object.keys(data.gauges);
    const first = paper[0], shown = [first, paper[v.step], recommended[v.step]];
    const lams = `${shown[1].lam}, and ${shown[2].lam} in whitened FRHSIC`;
    root.querySelector("output").textContent = lams;
    root.querySelector("input[name=step]").setAttribute("aria-valuetext", lams);
    root.querySelectorAll("svg").forEach((svg, place) => {
      const frame = shown[place], width = Math.max(130, svg.parentNode.clientWidth), side = Math.min(width, 230), row = 40;
      const middle = width / 2, height = side + 14 + row * names.length;
      svg.replaceChildren();
      for (const [key, value] of Object.entries({ viewBox: `0 0 ${width} ${height}`, width, height })) svg.setAttribute(key, value);
      element("rect", { x: middle - side / 2 + 0.5, y: 0.5, width: side - 1, height: side - 1, class: "frame" }, svg);
      const [a, b, c] = v.view === "true" ? frame.squeeze : [1, 0, 1]; // back to the true scale of the positions
      frame.points.map(([x, y]) => [a * x + b * y, b * x + c * y]).forEach(([x, y], i) => {
        if (Math.abs(x) > reach || Math.abs(y) > reach) return;
        const at = { cx: middle + (side / 2) * (x / reach), cy: (side / 2) * (1 - y / reach), r: side > 180 ? 3.2 : 2.4 };
        element("circle", { ...at, class: "dot person" }, svg).style.fill = data.colors[i];
      });
      element("text", { x: middle - side / 2 + 6, y: 16, class: "number" }, svg, `λ = ${frame.lam}`);
      names.forEach((name, i) => {
        const top = side + 8 + row * i, most = name === "normalized_hsic" ? first[name] : 1, room = width - 44;
        element("text", { x: 0, y: top + 13 }, svg, data.gauges[name]);
        element("rect", { x: 0, y: top + 18, width: Math.max(1, room * Math.min(1, frame[name] / most)), height: 11, class: `bar ${place ? "two" : "faint"}` }, svg);
        if (place) element("rect", { x: room * (first[name] / most) - 1, y: top + 15, width: 2, height: 17, class: "bar mark" }, svg);
        element("text", { x: width, y: top + 28, "text-anchor": "end", class: "number" }, svg, frame[name].toFixed(name === "normalized_hsic" ? 3 : 2));
      });
    });
    const scale = root.querySelectorAll("svg")[0], wide = 7, left = Number(scale.getAttribute("width")) / 2 + Math.min(scale.getAttribute("width"), 230) / 2 - wide * data.scale.length - 5;
    data.scale.forEach((color, i) => element("rect", { x: left + wide * i, y: 6, width: wide, height: 7, fill: color }, scale));
    element("text", { x: left + wide * data.scale.length, y: 26, "text-anchor": "end" }, scale, "age 20–70");
    const told = (form) => {
      const fell = Math.round(100 * (1 - form.normalized_hsic / first.normalized_hsic)), more = form.nonlinear_r2 > first.nonlinear_r2;
      return `HSIC ${fell < 0 ? `rises by ${-fell}` : `falls by ${fell}`} %, and a probe predicts the age ${more ? "better than" : "less well than"} before (R² ${form.nonlinear_r2.toFixed(2)} instead of ${first.nonlinear_r2.toFixed(2)})`;
    };
    say(root, {
      sentence: v.step === 0 ? "Without a penalty Z reveals the age: young and old people lie in different places." :
        `With the paper's penalty at λ = ${shown[1].lam}, ${told(shown[1])}. With whitened FRHSIC at λ = ${shown[2].lam}, ${told(shown[2])}.`,
    });
  }

  /* Numbers that repeat: the same shape gives the same points. */
  function seeded(seed) {
    let state = seed >>> 0;
    return () => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return (state + 0.5) / 4294967296;
    };
  }

  const MOST_POINTS = 300, NO_POINTS = 6; // the last shape is an empty sheet
  const MOST_GAP = 4.5; // two tenths of the people are at most √20 standard deviations apart

  function shapePoints(shape, noise, n) {
    const draw = seeded(7), normal = () => Math.sqrt(-2 * Math.log(draw())) * Math.cos(2 * Math.PI * draw());
    return Array.from({ length: n }, () => {
      const u = 2 * draw() - 1, e = noise * normal();
      const places = [
        [u, 0.8 * u + e], [u, 0.7 * Math.cos(Math.PI * u) + e],
        [0.75 * Math.cos(Math.PI * u) + 0.5 * e, 0.75 * Math.sin(Math.PI * u) + 0.5 * noise * normal()],
        [u, (u + 1) * (0.15 + noise) * normal()], [u, (u > 0 ? 0.5 : -0.5) + e], [u, 0.45 * normal()],
      ];
      return places[shape].map((x) => Math.max(-1, Math.min(1, x)));
    });
  }

  /* Add and remove points by mouse or finger (press, drag to draw a trail) and by keyboard (a cross that arrows move). */
  function drawing(root, svg, a) {
    const near = ([s, z], reach) => {
      const gaps = root.points.map((p) => Math.hypot(a.x(p[0]) - a.x(s), a.y(p[1]) - a.y(z)));
      const least = Math.min(...gaps);
      return least <= reach ? gaps.indexOf(least) : -1;
    };
    const add = (point) => { if (root.points.length < MOST_POINTS && point.every((x) => Math.abs(x) <= 1.05)) root.points.push(point); };
    const place = (event) => {
      const box = svg.getBoundingClientRect(), ratio = svg.viewBox.baseVal.width / box.width;
      const x = (event.clientX - box.left) * ratio, y = (event.clientY - box.top) * ratio;
      return [-1.05 + (2.1 * (x - a.box.left)) / (a.box.right - a.box.left), 1.05 - (2.1 * (y - a.box.top)) / (a.box.bottom - a.box.top)];
    };
    const later = () => { root.frame ||= requestAnimationFrame(() => { root.frame = 0; root.update(); }); };
    svg.style.touchAction = "none"; // a finger draws here; the page scrolls beside the picture
    svg.tabIndex = 0;
    svg.setAttribute("role", "application");
    svg.setAttribute("aria-label", "Drawing area, S to the right and Z upwards. Arrow keys move the cross, Enter adds a point, Delete removes the nearest one.");
    svg.onpointerdown = (event) => {
      const point = place(event), hit = near(point, event.pointerType === "touch" ? 14 : 6);
      root.cross = null;
      root.trail = hit < 0 ? event.pointerId : null; // a press that removes a point draws no trail
      svg.setPointerCapture(event.pointerId);
      if (hit < 0) add(point);
      else root.points.splice(hit, 1);
      later();
    };
    svg.onpointermove = (event) => {
      if (!event.buttons || root.trail !== event.pointerId) return;
      const point = place(event);
      if (near(point, 12) < 0) { add(point); later(); }
    };
    svg.onpointerup = svg.onpointercancel = () => { root.trail = null; };
    svg.onkeydown = (event) => {
      const [s, z] = root.cross || [0, 0], step = event.shiftKey ? 0.2 : 0.05, end = (x) => Math.max(-1, Math.min(1, x));
      const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
      const hit = event.key === "Delete" || event.key === "Backspace" ? near([s, z], Infinity) : -1;
      if (moves[event.key]) root.cross = [end(s + moves[event.key][0]), end(z + moves[event.key][1])];
      else if (event.key === "Enter" || event.key === " ") add(root.cross = [s, z]);
      else if (hit >= 0) root.points.splice(hit, 1);
      else return;
      event.preventDefault();
      later();
    };
    if (root.cross) {
      const [x, y] = [a.x(root.cross[0]), a.y(root.cross[1])];
      element("path", { d: `M${x - 9} ${y}H${x + 9}M${x} ${y - 9}V${y + 9}`, class: "line cross" }, svg);
    }
  }

  function scatter(root, v) {
    const asked = `${v.shape} ${v.noise}`;
    root.restart = () => { root.asked = root.cross = null; };
    if (root.asked !== asked) {
      root.asked = asked;
      root.points = Number(v.shape) < NO_POINTS ? shapePoints(Number(v.shape), v.noise, 120) : [];
    }
    const [left, right] = root.querySelectorAll("svg");
    const a = axes(left, { height: 300, x: { from: -1.05, to: 1.05, ticks: [], label: "S" }, y: { from: -1.05, to: 1.05, ticks: [], label: "Z" } });
    root.points.forEach(([s, z]) => a.dot(s, z, "two", 4.5));
    drawing(root, left, a);
    const s = root.points.map((p) => p[0]), z = root.points.map((p) => p[1]), enough = s.length > 5;
    const rows = [
      ["|correlation|", enough ? Math.abs(F.correlation(z, s)) : 0, "one"],
      ["gap between two groups of S, in standard deviations", enough ? F.binnedGap(z, s, 2) : 0, "one", MOST_GAP],
      ["gap between ten groups of S, in standard deviations", enough ? F.binnedGap(z, s, 10) : 0, "one", MOST_GAP],
      ["distance correlation", enough ? F.distanceCorrelation(z, s) : 0, "two"],
      ["√ normalized HSIC", enough ? Math.sqrt(F.normalizedHsic(z, s)) : 0, "two"],
    ];
    measures(right, rows);
    root.measured = Object.fromEntries(rows.map(([name, value]) => [name, value]));
    say(root, {
      sentence: !enough ? `${s.length} points. Add at least six.` : `${s.length} points. ` + (rows[0][1] < 0.15 && rows[4][1] > 0.25 ?
        "The correlation is near zero, and Z depends on S all the same: distance correlation and HSIC are clearly positive." :
        rows[0][1] > 0.5 ? `Every measure finds this dependence, because on the whole Z ${F.correlation(z, s) > 0 ? "rises" : "falls"} with S.` :
          "With this many points distance correlation and HSIC are not zero even for a cloud: a finite sample has a floor."),
    });
  }

  const EXPLORERS = { representation, scatter, hiring, waves, people, samples, trap, frontier };

  document.querySelectorAll(".explorer").forEach((root) => { // a deferred script: the page is there
    const data = root.querySelector("script[type='application/json']");
    if (data) root.data = JSON.parse(data.textContent);
    controls(root, EXPLORERS[root.dataset.explorer]);
    root.update();
  });
})();
