// What the pages need beyond htmx: the theme, a question before what cannot be undone, and what to do when the
// service does not answer.
(() => {
  "use strict";
  const root = document.documentElement;
  const kept = (() => { try { return localStorage.getItem("lenience-theme"); } catch { return null; } })();
  if (kept === "light" || kept === "dark") root.dataset.theme = kept;

  const ready = () => {
    const button = document.getElementById("theme");
    button?.addEventListener("click", () => {
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      try { localStorage.setItem("lenience-theme", root.dataset.theme); } catch { /* a private window */ }
    });

    document.addEventListener("click", (event) => {
      const asked = event.target.closest("[data-confirm]");
      if (asked && !confirm(asked.dataset.confirm)) event.preventDefault();
    });

    // A click on a way in the picture chooses its segment.
    document.addEventListener("click", (event) => {
      const way = event.target.closest("path[data-segment]");
      if (!way) return;
      const address = new URL(location.href);
      address.searchParams.set("segment", way.dataset.segment);
      location.assign(address);
    });

    // The outputs beside sliders.
    document.addEventListener("input", (event) => {
      const output = event.target.closest("label")?.querySelector("output[data-of]");
      if (output) output.value = event.target.value;
    });

    const trouble = document.getElementById("trouble");
    const tell = (hidden) => () => { if (trouble) trouble.hidden = hidden; };
    document.body.addEventListener("htmx:sendError", tell(false));
    document.body.addEventListener("htmx:responseError", tell(false));
    document.body.addEventListener("htmx:afterOnLoad", tell(true));
    document.body.addEventListener("htmx:beforeRequest", (event) => {
      // A page that nobody sees asks for nothing.
      const polled = event.detail.elt.getAttribute("hx-trigger")?.includes("every");
      if (polled && document.hidden) event.preventDefault();
      // Nor is what someone is reading with the keyboard taken away under the cursor.
      if (polled && getSelection()?.type === "Range") event.preventDefault();
    });
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", ready); else ready();
})();
