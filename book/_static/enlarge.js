/* Figures open enlarged: by a click on them, or by the button below, which the keyboard reaches. */
(function () {
  "use strict";
  const SMALLEST = 300; // pixels: icons and the like stay as they are

  function makeDialog() {
    const dialog = document.createElement("dialog");
    dialog.className = "enlarged";
    dialog.setAttribute("aria-label", "Enlarged figure");
    const close = document.createElement("button");
    close.type = "button";
    close.textContent = "Close";
    close.addEventListener("click", () => dialog.close());
    const view = document.createElement("div");
    view.className = "enlarged-view";
    view.tabIndex = 0; // so that the keyboard can scroll it
    dialog.append(close, view);
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    document.body.append(dialog);
    return dialog;
  }

  function enlarge(picture) {
    const dialog = document.querySelector("dialog.enlarged") || makeDialog();
    const view = dialog.querySelector(".enlarged-view"), copy = new Image();
    copy.src = picture.src;
    copy.alt = picture.alt;
    view.replaceChildren(copy);
    dialog.showModal();
    // As wide as the window, and on a narrow one wider: there the picture is moved about.
    copy.style.width = `${Math.max(view.clientWidth, Math.min(picture.naturalWidth, 2.5 * view.clientWidth))}px`;
    view.scrollTo(0, 0);
  }

  window.addEventListener("load", () => {
    document.querySelectorAll(".bd-article img").forEach((picture) => {
      if (picture.closest("a, .explorer") || picture.naturalWidth < SMALLEST) return;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "enlarge";
      button.textContent = "Enlarge";
      button.setAttribute("aria-label", "Enlarge the figure");
      button.addEventListener("click", () => enlarge(picture));
      picture.classList.add("can-enlarge");
      picture.addEventListener("click", () => enlarge(picture));
      picture.after(button);
    });
  });
})();
