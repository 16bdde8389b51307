/* Start every explorer of the page. */
import { controls } from "./controls.js";
import { formulas } from "./formulas.js";
import { frontier } from "./frontier.js";
import { hiring } from "./hiring.js";
import { needle } from "./needle.js";
import { people } from "./people.js";
import { samples } from "./samples.js";
import { scatter } from "./scatter.js";
import { trap } from "./trap.js";
import { waves } from "./waves.js";

const EXPLORERS = { needle, scatter, hiring, waves, people, samples, trap, frontier };

globalThis.frhsicFormulas = formulas; // tests compare them with the library

document.querySelectorAll(".explorer").forEach((root) => {
  const data = root.querySelector("script[type='application/json']");
  if (data) root.data = JSON.parse(data.textContent);
  controls(root, EXPLORERS[root.dataset.explorer]);
  root.update();
});
