// Keys and small comforts. Every page works without this script.
(() => {
  "use strict";
  const rows = () => [...document.querySelectorAll("a[data-row]")].filter((row) => row.offsetParent);
  const isTyping = (target) =>
    target.matches("input, textarea, select, [contenteditable]") && target.type !== "checkbox";
  let pending = "";

  const step = (by) => {
    const all = rows();
    const next = all[Math.max(0, Math.min(all.length - 1, all.indexOf(document.activeElement) + by))];
    next?.focus();
  };

  const go = (key) => document.querySelector(`nav a[data-key="${CSS.escape(key)}"]`)?.click();

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const search = document.getElementById("q");
    if (event.target === search && event.key === "ArrowDown") {
      document.querySelector("#suggestions a[data-row]")?.focus();
      event.preventDefault();
      return;
    }
    if (event.key === "Escape") {
      document.getElementById("suggestions")?.replaceChildren();
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
    if (form.method !== "post" || form.dataset.sent || event.defaultPrevented) {
      if (form.dataset.sent) event.preventDefault();
      return;
    }
    form.dataset.sent = "yes";
  });
  // The browser may show this page again from its memory.
  addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  });

  // A list that grows by itself keeps its newest entries.
  const longest = 200;
  document.addEventListener("htmx:sse:after:message", (event) => {
    const list = event.target;
    while (list.children.length > longest) list.lastElementChild.remove();
    document.querySelector("#events:not(:empty) ~ .empty")?.remove();
  });

  document.addEventListener("click", (event) => {
    if (!event.target.closest(".search")) document.getElementById("suggestions")?.replaceChildren();
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });
})();
