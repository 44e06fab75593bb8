// What the pages need beyond htmx: the theme, confirmation of actions that cannot be undone, and a notice when the
// service does not respond.
(() => {
  "use strict";
  const root = document.documentElement;
  const theme = (() => { try { return localStorage.getItem("lenience-theme"); } catch { return null; } })();
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;

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

    // In the reason of a review, Ctrl + Enter accepts and Ctrl + Shift + Enter rejects.
    document.addEventListener("keydown", (event) => {
      const form = event.target.closest("form[data-review]");
      if (!form || event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      form.requestSubmit(form.querySelector(`button[value=${event.shiftKey ? "reject" : "accept"}]`));
    });

    // A slow form shows that it is busy and is not sent twice.
    document.addEventListener("submit", (event) => {
      if (!event.target.matches("form[data-slow]")) return;
      if (event.target.dataset.sent) event.preventDefault();
      event.target.dataset.sent = "yes";
      event.submitter?.setAttribute("aria-busy", "true");
    });

    // Put the answers of a step into its address before leaving it, so that the back button restores them.
    document.addEventListener("submit", (event) => {
      if (!event.target.matches("form[data-step]")) return;
      const answers = new URLSearchParams(new FormData(event.target));
      history.replaceState(history.state, "", `${event.target.dataset.step}?${answers}`);
    });

    // A refresh of a part of the page keeps its details open.
    let open = [];
    document.addEventListener("htmx:beforeSwap", (event) => {
      open = [...event.detail.target.querySelectorAll("details[id][open]")].map((details) => details.id);
    });
    document.addEventListener("htmx:afterSwap", () => {
      for (const id of open) document.getElementById(id)?.setAttribute("open", "");
      open = [];
    });

    // A click on a line in the chart chooses its segment.
    document.addEventListener("click", (event) => {
      const way = event.target.closest("path[data-segment]");
      if (!way) return;
      const address = new URL(location.href);
      address.searchParams.set("segment", way.dataset.segment);
      location.assign(address);
    });

    // Keep a slider and its field in step before htmx reads them. A slider with data-log is logarithmic.
    document.addEventListener("input", (event) => {
      const pair = event.target.closest("[data-pair]");
      if (!pair) return;
      const field = pair.querySelector("[type=number]"), slider = pair.querySelector("[type=range]");
      const log = "log" in slider.dataset;
      if (event.target === slider) field.value = log ? Number((10 ** slider.value).toPrecision(3)) : slider.value;
      else if (field.value > 0 || !log) slider.value = log ? Math.log10(field.value) : field.value;
      slider.setAttribute("aria-valuetext", field.value);
      // Mark an invalid number and send no request with it.
      const wrong = !field.checkValidity(), words = pair.querySelector("[data-words]");
      if (wrong) field.setAttribute("aria-invalid", "true"); else field.removeAttribute("aria-invalid");
      words.hidden = !wrong;
      words.textContent = wrong ? words.dataset.words : "";
      const any = pair.closest("form").querySelector("[aria-invalid]") !== null;
      document.getElementById("answer").inert = any;
      document.querySelector("#save button")?.toggleAttribute("disabled", any);
    }, true);

    // Announce the answer to screen readers from an element that stays in the page.
    document.body.addEventListener("htmx:afterSettle", () => {
      const live = document.getElementById("live"), text = document.querySelector("[data-say]")?.textContent;
      if (live && text && live.textContent !== text) live.textContent = text;
    });

    const trouble = document.getElementById("trouble");
    const tell = (hidden) => () => { if (trouble) trouble.hidden = hidden; };
    document.body.addEventListener("htmx:sendError", tell(false));
    document.body.addEventListener("htmx:responseError", tell(false));
    document.body.addEventListener("htmx:afterOnLoad", tell(true));
    document.body.addEventListener("htmx:beforeRequest", (event) => {
      // A hidden page sends no requests.
      const polled = event.detail.elt.getAttribute("hx-trigger")?.includes("every");
      if (polled && document.hidden) event.preventDefault();
      // Do not replace a part of the page that has the keyboard focus.
      if (polled && getSelection()?.type === "Range") event.preventDefault();
    });
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", ready); else ready();
})();
