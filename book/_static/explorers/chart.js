/* Charts as plain SVG. D3 makes scales, axes and lines; the theme's variables give the colors. */

/**
 * A number as a reader writes it: three digits, or a power of ten.
 * @param {number} value
 * @param {number} [digits]
 * @returns {string}
 */
export function pretty(value, digits = 3) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 0.001 && size < 1000) return Number(value.toPrecision(digits)).toString();
  const [mantissa, exponent] = value.toExponential(1).split("e");
  const raised = [...String(Number(exponent))].map((sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)]);
  const factor = mantissa === "1.0" ? "" : `${mantissa}·`;
  return `${factor}10${raised.join("")}`;
}

/**
 * A share in per cent that never rounds to nothing or to everything.
 * @param {number} part
 * @param {number} whole
 */
export function percent(part, whole) {
  const share = (100 * part) / whole;
  if (share > 99 && share < 100) return "more than 99 %";
  if (share > 0 && share < 1) return "less than 1 %";
  return `${share.toFixed(0)} %`;
}

/**
 * A new SVG element, appended to its parent if there is one.
 * @param {string} name
 * @param {Object<string, any>} attributes
 * @param {Element} [parent]
 * @param {string} [text]
 */
export function element(name, attributes, parent, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  if (text !== undefined) node.textContent = text;
  if (parent) parent.appendChild(node);
  return node;
}

/**
 * An empty picture of a width and a height.
 * @param {SVGSVGElement} svg
 * @param {number} width
 * @param {number} height
 */
export function sheet(svg, width, height) {
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("width", String(width));
  svg.setAttribute("height", String(height));
}

/** Text with a subscript after each underscore: σ_Z. */
function named(node, text) {
  text.split(/_(.)/).forEach((part, i) => {
    if (!part) return;
    const lowered = i % 2 === 1;
    const raisedBack = i > 0 ? { dy: "-0.19em" } : {};
    element("tspan", lowered ? { dy: "0.25em", "font-size": "0.75em" } : raisedBack, node, part);
  });
  return node;
}

/** A scale of D3 for {from, to, log}. */
function scaleOf(options, range) {
  const scale = options.log ? d3.scaleLog() : d3.scaleLinear();
  return scale.domain([options.from, options.to]).range(range);
}

/**
 * One pair of axes, with functions that draw in them.
 * @param {SVGSVGElement} svg
 * @param {{height?: number, x: Scale, y: Scale}} options where a Scale is {from, to, log, ticks, label}
 */
export function axes(svg, options) {
  const width = Math.max(260, svg.parentNode.clientWidth), height = options.height || 260;
  const box = { left: options.y.label ? 66 : 52, right: width - 10, top: 12, bottom: height - 40 };
  sheet(svg, width, height);
  const x = scaleOf(options.x, [box.left, box.right]), y = scaleOf(options.y, [box.bottom, box.top]);
  const lowest = options.y.log ? 1e-300 : -Infinity;
  const inside = (value) => Math.max(box.top - 2, Math.min(box.bottom, y(Math.max(value, lowest))));

  const frame = d3.select(svg).append("g").attr("class", "axis");
  const below = d3.axisBottom(x).tickValues(options.x.ticks).tickFormat((tick) => pretty(tick));
  const beside = d3.axisLeft(y).tickValues(options.y.ticks).tickFormat((tick) => pretty(tick));
  frame.append("g").attr("transform", `translate(0,${box.bottom})`).call(below.tickSizeInner(4).tickSizeOuter(0));
  frame.append("g").attr("transform", `translate(${box.left},0)`)
    .call(beside.tickSizeInner(box.left - box.right).tickSizeOuter(0))
    .selectAll(".tick line").attr("class", "grid");
  const middle = (box.left + box.right) / 2, halfway = (box.top + box.bottom) / 2;
  named(element("text", { x: middle, y: height - 6, "text-anchor": "middle" }, frame.node()), options.x.label);
  if (options.y.label) {
    const turned = { x: -halfway, y: 12, "text-anchor": "middle", transform: "rotate(-90)" };
    named(element("text", turned, frame.node()), options.y.label);
  }
  const path = d3.line().x((point) => x(point[0])).y((point) => inside(point[1]));
  return {
    box, x, y,
    line: (points, name) => element("path", { d: path(points), class: `line ${name}` }, svg),
    level(value, name) {
      const place = { x1: box.left, x2: box.right, y1: inside(value), y2: inside(value) };
      return element("line", { ...place, class: `line ${name}` }, svg);
    },
    bar(a, w, value, name) {
      const top = inside(value);
      const place = { x: x(a) - w / 2, width: w, y: top, height: Math.max(0, box.bottom - top) };
      return element("rect", { ...place, class: `bar ${name}` }, svg);
    },
    dot: (a, b, name, r = 5) => element("circle", { cx: x(a), cy: inside(b), r, class: `dot ${name}` }, svg),
    band(a, b, name) {
      const left = Math.max(box.left, x(a)), right = Math.min(box.right, x(b));
      const place = { x: left, width: Math.max(0, right - left), y: box.top, height: box.bottom - box.top };
      return element("rect", { ...place, class: name }, svg);
    },
  };
}

/** Ticks at powers of ten, at most about five. */
export function logTicks(from, to) {
  const first = Math.ceil(Math.log10(from) - 1e-9), last = Math.floor(Math.log10(to) + 1e-9);
  const step = Math.ceil((last - first) / 5) || 1;
  return d3.range(first, last + 1, step).map((exponent) => Math.pow(10, exponent));
}

/** Round ticks from zero. */
export const niceTicks = (to) => d3.ticks(0, to, 4);

/** Numbers at equal distances, both ends included. */
export const span = (from, to, n) => d3.range(n).map((i) => from + ((to - from) * i) / (n - 1));

/**
 * Horizontal bars with a number at the end of each.
 * @param {SVGSVGElement} svg
 * @param {Array<[string, number, string, number?, number?]>} rows words, value, color, value at full length, mark
 */
export function measures(svg, rows, most = 1, digits = 2) {
  const width = Math.max(260, svg.parentNode.clientWidth), tall = 52, room = width - 58;
  sheet(svg, width, tall * rows.length);
  rows.forEach(([words, value, kind, end = most, mark], i) => {
    const top = tall * i, length = room * Math.min(1, value / end);
    element("text", { x: 0, y: top + 14 }, svg, words);
    element("rect", { x: 0, y: top + 20, width: Math.max(1, length), height: 13, class: `bar ${kind}` }, svg);
    if (mark !== undefined) {
      const place = room * Math.min(1, mark / end) - 1;
      element("rect", { x: place, y: top + 17, width: 2, height: 19, class: "bar mark" }, svg);
    }
    element("text", { x: width, y: top + 31, "text-anchor": "end", class: "number" }, svg, value.toFixed(digits));
  });
}
