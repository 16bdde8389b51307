/* Start every explorer of the page. */
import { controls } from "./controls.js";
import { formulas } from "./formulas.js";
import { frontier } from "./frontier.js";
import { boundOf, curveOf } from "./gap.js";
import { hiring } from "./hiring.js";
import { needle } from "./needle.js";
import { ownFile } from "./own_file.js";
import { people } from "./people.js";
import { promise } from "./promise.js";
import { samples } from "./samples.js";
import { scatter } from "./scatter.js";
import { trap } from "./trap.js";
import { waves } from "./waves.js";

const EXPLORERS = { needle, scatter, hiring, waves, people, samples, promise, trap, frontier };

globalThis.frhsicFormulas = { ...formulas, curveOf, boundOf }; // tests compare them with the library

document.querySelectorAll(".explorer").forEach((root) => {
  if (root.dataset.explorer === "own_file") {
    ownFile(root); // it has a file in place of sliders
    return;
  }
  const data = root.querySelector("script[type='application/json']");
  if (data) root.data = JSON.parse(data.textContent);
  controls(root, EXPLORERS[root.dataset.explorer]);
  root.update();
});
