/* Inputs of an explorer, what it says, and dragging in a chart. */
import { pretty } from "./chart.js";

/* Inputs of one explorer by name; data-scale="log" means that the slider moves the exponent. */
export function controls(root, draw) {
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
      if (!button.hasAttribute("data-keep")) reset(); // most buttons start again, some change one thing
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

export function say(root, values) {
  for (const name in values) {
    const place = root.querySelector(`[data-value="${name}"]`);
    if (place && place.textContent !== values[name]) place.textContent = values[name];
  }
}

/* Pointer on a chart sets a value: press or drag. */
export function dragging(svg, pick) {
  const move = (event) => {
    const place = svg.getBoundingClientRect();
    pick((event.clientX - place.left) * (svg.viewBox.baseVal.width / place.width));
  };
  svg.onpointerdown = (event) => { svg.setPointerCapture(event.pointerId); move(event); };
  svg.onpointermove = (event) => { if (event.buttons) move(event); };
}
