// Applies the theme that somebody has chosen in this browser, before anything is drawn. Without one the system's holds.
"use strict";
(() => {
  const root = document.documentElement;
  const apply = (theme) => {
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
    for (const button of document.querySelectorAll(".themes button")) {
      button.setAttribute("aria-pressed", String(button.dataset.to === theme));
    }
  };
  const kept = () => { try { return localStorage.getItem("theme") ?? ""; } catch { return ""; } };
  apply(kept());
  document.addEventListener("DOMContentLoaded", () => apply(kept()));
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.(".themes button");
    if (!button) return;
    try { localStorage.setItem("theme", button.dataset.to); } catch { /* it holds for this page */ }
    apply(button.dataset.to);
  });
})();
