// Keyboard shortcuts, and forms that are sent once. Every page works without this script.
(() => {
  "use strict";
  const rows = () => [...document.querySelectorAll("a[data-row]")].filter((row) => row.offsetParent);
  const isTyping = (target) =>
    target.matches("input, textarea, select, [contenteditable]") && target.type !== "checkbox";
  let pending = "";

  // Focuses the element at this index, or the nearest one.
  const focusAt = (all, index) => all[Math.max(0, Math.min(all.length - 1, index))]?.focus();

  const step = (by) => {
    const all = rows();
    focusAt(all, all.indexOf(document.activeElement) + by);
  };

  const suggestions = () => document.getElementById("suggestions");

  // No answer that is late opens them again.
  let isClosed = true;
  const closeSuggestions = () => {
    isClosed = true;
    document.getElementById("q")?.dispatchEvent(new Event("htmx:abort"));
    suggestions()?.replaceChildren();
  };
  document.addEventListener("htmx:before:swap", (event) => {
    if (isClosed && event.target.id === "q") event.preventDefault();
  });
  document.addEventListener("input", (event) => {
    if (event.target.id === "q") isClosed = false;
  });

  // Moves between the search box and its suggestions. Returns whether it moved.
  const stepInSuggestions = (from, by) => {
    const search = document.getElementById("q");
    const all = [search, ...(suggestions()?.querySelectorAll("a[data-row]") ?? [])];
    const at = all.indexOf(from);
    if (at < 0 || all.length < 2) return false;
    focusAt(all, at + by);
    return true;
  };

  const go = (key) => document.querySelector(`nav a[data-key="${CSS.escape(key)}"]`)?.click();

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const search = document.getElementById("q");
    if (event.key === "Escape") {
      if (suggestions()?.contains(event.target)) search?.focus();
      // The first Escape keeps the text, the second one clears it.
      if (event.target === search && !isClosed) event.preventDefault();
      closeSuggestions();
      return;
    }
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (stepInSuggestions(event.target, event.key === "ArrowDown" ? 1 : -1)) event.preventDefault();
      return;
    }
    if (isTyping(event.target)) return;
    const before = pending;
    pending = "";
    if (before === "g") return go(event.key);
    switch (event.key) {
      case "/":
        search?.focus();
        search?.select();
        break;
      case "j":
        step(1);
        break;
      case "k":
        step(-1);
        break;
      case "g":
        pending = "g";
        break;
      case "?":
        document.getElementById("keys")?.showModal();
        break;
      default:
        return;
    }
    event.preventDefault();
  });

  // A double click sends a form once. The request id in the form makes a repeat safe anyway.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.dataset.sent) event.preventDefault();
    else if (form.method === "post" && !event.defaultPrevented) form.dataset.sent = "yes";
  });
  // The browser may show this page again from its memory.
  addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  });

  // A list that grows by itself keeps its newest entries.
  const MAX_EVENTS = 200;
  document.addEventListener("htmx:sse:after:message", (event) => {
    const list = event.target;
    // A change that the page has already is not shown twice.
    for (const line of list.querySelectorAll("[data-event]")) {
      const same = document.querySelectorAll(`[data-event="${CSS.escape(line.dataset.event)}"]`);
      if (same.length > 1) line.remove();
    }
    while (list.children.length > MAX_EVENTS) list.lastElementChild.remove();
    document.querySelector("#events:not(:empty) ~ .empty")?.remove();
  });

  // A click beside the link of a row opens it, with its keys: Ctrl opens a tab. One beside its box ticks that.
  const openRow = (event) => {
    const row = event.target.closest(".rows tbody tr");
    if (!row?.querySelector("a[data-row]") || event.target.closest("a, button, input, label, select, textarea") || String(getSelection())) return;
    const box = event.target.closest(".select")?.querySelector("input");
    if (box) return box.click();
    const link = row.querySelector("a[data-row]");
    if (event.ctrlKey || event.metaKey || event.shiftKey) open(link.href, "_blank", "noopener");
    else link.click();
  };

  document.addEventListener("click", (event) => {
    openRow(event);
    if (!event.target.closest(".search")) closeSuggestions();
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });
})();
