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

    // What takes a while says so, and is not sent twice.
    document.addEventListener("submit", (event) => {
      if (!event.target.matches("form[data-slow]")) return;
      if (event.target.dataset.sent) event.preventDefault();
      event.target.dataset.sent = "yes";
      event.submitter?.setAttribute("aria-busy", "true");
    });

    // A step of a form is left with its answers in its address, so that the way back finds them.
    document.addEventListener("submit", (event) => {
      if (!event.target.matches("form[data-step]")) return;
      const answers = new URLSearchParams(new FormData(event.target));
      history.replaceState(history.state, "", `${event.target.dataset.step}?${answers}`);
    });

    // A click on a way in the picture chooses its segment.
    document.addEventListener("click", (event) => {
      const way = event.target.closest("path[data-segment]");
      if (!way) return;
      const address = new URL(location.href);
      address.searchParams.set("segment", way.dataset.segment);
      location.assign(address);
    });

    // A slider and the field beside it say the same, before htmx reads them; one with data-log moves by ratios.
    document.addEventListener("input", (event) => {
      const pair = event.target.closest("[data-pair]");
      if (!pair) return;
      const field = pair.querySelector("[type=number]"), slider = pair.querySelector("[type=range]");
      const log = "log" in slider.dataset;
      if (event.target === slider) field.value = log ? Number((10 ** slider.value).toPrecision(3)) : slider.value;
      else if (field.value > 0 || !log) slider.value = log ? Math.log10(field.value) : field.value;
      slider.setAttribute("aria-valuetext", field.value);
      // A number that cannot be is marked, and nothing is shown as if it followed from it.
      const wrong = !field.checkValidity(), words = pair.querySelector("[data-words]");
      if (wrong) field.setAttribute("aria-invalid", "true"); else field.removeAttribute("aria-invalid");
      words.hidden = !wrong;
      words.textContent = wrong ? words.dataset.words : "";
      const any = pair.closest("form").querySelector("[aria-invalid]") !== null;
      document.getElementById("answer").inert = any;
      document.querySelector("#save button")?.toggleAttribute("disabled", any);
    }, true);

    // What an answer says is said aloud from a place that stays.
    document.body.addEventListener("htmx:afterSettle", () => {
      const live = document.getElementById("live"), said = document.querySelector("[data-say]")?.textContent;
      if (live && said && live.textContent !== said) live.textContent = said;
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
