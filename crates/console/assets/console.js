// Keyboard shortcuts, forms that are sent once, and times of the zone that is shown. Every page works without this script.
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

  // The address of a search has its text behind #, which browsers send to nobody: whoever gets the link searches again.
  const keepSearch = () => {
    const search = document.getElementById("q");
    if (!search || !/\/search\/\d+$/.test(location.pathname)) return;
    if (search.value) return history.replaceState(null, "", `#q=${encodeURIComponent(search.value)}`);
    const text = new URLSearchParams(location.hash.slice(1)).get("q");
    if (!text) return;
    search.value = text;
    search.form.requestSubmit();
  };
  keepSearch();

  // So does the address of an audit, with the fields of its form.
  const keepAudit = () => {
    const audit = /^(.*\/audit)\/\d+$/.exec(location.pathname)?.[1];
    if (!audit) return;
    const asked = document.getElementById("asked");
    if (asked) {
      const given = [...new FormData(asked)].filter(([name, value]) => value && !name.startsWith("day-"));
      return history.replaceState(null, "", `#${new URLSearchParams(given)}`);
    }
    const form = document.createElement("form");
    [form.method, form.action] = ["post", audit];
    for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
      const input = document.createElement("input");
      [input.type, input.name, input.value] = ["hidden", name, value];
      form.append(input);
    }
    if (!form.childElementCount) return;
    document.body.append(form);
    form.submit();
  };

  // The users who are selected in a list: how many, all of the page at once, and two to merge.
  const selection = document.getElementById("selection");
  const selectAll = document.getElementById("select-all");
  const boxes = [...document.querySelectorAll('.select input[name="user"]')];
  const showSelection = () => {
    const count = boxes.filter((box) => box.checked).length;
    const shown = document.getElementById("selected");
    shown.hidden = count === 0;
    shown.querySelector("strong").textContent = count;
    selectAll.checked = count === boxes.length;
    selectAll.indeterminate = count > 0 && count < boxes.length;
    for (const button of selection.querySelectorAll("button")) {
      button.disabled = button.name === "merge" ? count !== 2 : count === 0;
    }
  };
  if (selection && selectAll) {
    selectAll.hidden = false;
    selectAll.addEventListener("change", () => {
      for (const box of boxes) box.checked = selectAll.checked;
      showSelection();
    });
    for (const box of boxes) box.addEventListener("change", showSelection);
    addEventListener("pageshow", showSelection);
  }

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

  // The letter of a key; that of its place where the layout is of another script.
  const keyOf = ({ key, code, shiftKey }) => {
    const letter = /^Key([A-Z])$/.exec(code)?.[1];
    if (!letter || !/[^\0-\x7f]/.test(key)) return key;
    return shiftKey ? letter : letter.toLowerCase();
  };
  const hasKeys = document.documentElement.dataset.keys !== "off";
  const hint = document.getElementById("keys-hint");
  if (hint) hint.hidden = !hasKeys || !matchMedia("(hover: hover) and (pointer: fine)").matches;

  document.addEventListener("keydown", (event) => {
    // Keys of an input method are its own.
    if (event.isComposing || event.ctrlKey || event.altKey || event.metaKey) return;
    const search = document.getElementById("q");
    if (event.key === "Escape") {
      if (suggestions()?.contains(event.target)) search?.focus();
      // The first Escape keeps the text, the second one clears it.
      if (event.target === search && !isClosed) event.preventDefault();
      closeSuggestions();
      for (const toast of document.querySelectorAll(".toast[open]")) toast.close();
      for (const menu of document.querySelectorAll("details.menu[open]")) {
        menu.open = false;
        if (menu.contains(event.target)) menu.querySelector("summary").focus();
      }
      // It also ends the navigation that a form began.
      sendAgain();
      return;
    }
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (stepInSuggestions(event.target, event.key === "ArrowDown" ? 1 : -1)) event.preventDefault();
      return;
    }
    if (!hasKeys || isTyping(event.target)) return;
    const key = keyOf(event);
    const before = pending;
    pending = "";
    if (before === "g") return go(key);
    switch (key) {
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

  // A double click sends a form once. The request id in the form makes a repeat safe anyway. An answer that is a file,
  // or that never came, leaves the page as it was: after this time the form can be sent again.
  const AGAIN_MS = 15_000;
  const sendAgain = () => {
    for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  };
  // Another form of the page that was changed too would be lost: somebody is asked first.
  const isChanged = (field) =>
    field.type === "checkbox" || field.type === "radio"
      ? field.checked !== field.defaultChecked
      : field.options
        ? [...field.options].some((option) => option.defaultSelected && !option.selected)
        : "defaultValue" in field && field.value !== field.defaultValue;
  const leavesOthers = (form) => {
    const question = document.getElementById("other-forms")?.textContent;
    const others = [...document.querySelectorAll("main form")].filter((other) => other !== form);
    if (!question || !form.closest("main") || form.method === "dialog") return false;
    return others.some((other) => [...other.elements].some(isChanged)) && !confirm(question);
  };
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.dataset.sent || leavesOthers(form)) event.preventDefault();
    else if (form.method === "post" && !event.defaultPrevented) {
      form.dataset.sent = "yes";
      setTimeout(sendAgain, AGAIN_MS);
    }
  });
  // The browser may show this page again from its memory.
  addEventListener("pageshow", sendAgain);
  addEventListener("pageshow", (event) => {
    if (event.persisted) for (const toast of document.querySelectorAll(".toast")) toast.remove();
  });

  // A status that a page begins with is not said aloud. One that comes a moment later is.
  for (const status of document.querySelectorAll(".toast [role=status]")) {
    setTimeout(() => status.replaceChildren(...[...status.childNodes].map((node) => node.cloneNode(true))), 300);
  }

  // Regions that do not scroll are no stops of the Tab key.
  const setStops = () => {
    for (const region of document.querySelectorAll(".scroll[role=region]")) {
      if (region.scrollWidth > region.clientWidth) region.tabIndex = 0;
      else if (region !== document.activeElement) region.removeAttribute("tabindex");
    }
  };
  setStops();
  addEventListener("resize", setStops);
  document.addEventListener("htmx:after:swap", setStops);

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

  // Pages have times in UTC. Here they get those of the chosen zone, or of the browser's, with UTC on hover.
  const wallClock = (() => {
    const parts = { year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit" };
    const options = { ...parts, timeZone: document.documentElement.dataset.zone };
    try {
      // Swedish times are written as in ISO 8601.
      return new Intl.DateTimeFormat("sv-SE", options);
    } catch {
      // The browser does not know the zone.
      return new Intl.DateTimeFormat("sv-SE", { ...options, timeZone: "UTC" });
    }
  })();
  const zone = wallClock.resolvedOptions().timeZone;
  const wall = (at) => wallClock.format(at);

  const showTime = (element) => {
    const at = new Date(element.dateTime);
    const { textContent: text, title } = element;
    const utc = [text, title].find((one) => one.endsWith(" UTC"));
    if (isNaN(at) || !utc) return;
    element.dataset.shown = "yes";
    const local = wall(at).slice(0, 16);
    const isClock = /^\d\d:\d\d$/.test(text);
    if (text === utc) element.textContent = local;
    if (isClock) element.textContent = local.slice(11);
    element.title = text === utc ? [utc, title].filter((one) => one && one !== text).join(", ") || utc : `${local}, ${utc}`;
  };

  // Lists by day have days of UTC, which may be others in this zone.
  const showDays = () => {
    const lists = [...document.querySelectorAll("ol.audit:not(#events)")];
    const first = lists[0]?.previousElementSibling;
    if (!first) return;
    const end = document.createComment("end");
    lists.at(-1).after(end);
    const items = lists.flatMap((list) => [...list.children]);
    const [head, list] = [first.cloneNode(true), lists[0].cloneNode(false)];
    for (const old of lists) {
      old.previousElementSibling.remove();
      old.remove();
    }
    let [day, present] = ["", null];
    for (const item of items) {
      const own = wall(new Date(item.querySelector("time")?.dateTime ?? 0)).slice(0, 10);
      if (own !== day) {
        day = own;
        present = list.cloneNode(false);
        const title = head.cloneNode(true);
        title.firstElementChild.dateTime = title.firstElementChild.textContent = day;
        end.before(title, present);
      }
      present.append(item);
    }
  };

  // What was typed without an offset is in the zone that is shown. Servers read UTC.
  const DAY_MS = 86_400_000;
  // A day as the end of a period is in it as a whole.
  const toUtc = (typed, isEnd = false) => {
    const found = /^(\d{4}-\d\d-\d\d)(?:[T ]+(\d\d:\d\d(?::\d\d(?:\.\d+)?)?))?$/.exec(typed.trim());
    const begin = found ? Date.parse(`${found[1]}T${found[2] ?? "00:00"}Z`) : NaN;
    if (isNaN(begin)) return typed;
    const time = isEnd && !found[2] ? begin + DAY_MS : begin;
    const ahead = (at) => Date.parse(`${wall(at).replace(" ", "T")}Z`) - Math.floor(at / 1000) * 1000;
    const guess = time - ahead(time);
    return new Date(time - ahead(guess)).toISOString();
  };
  document.addEventListener("formdata", (event) => {
    for (const input of event.target.querySelectorAll("input[data-time][name]")) {
      event.formData.set(input.name, toUtc(input.value, input.dataset.time === "end"));
    }
    if (!event.formData.get("period") || zone === "UTC") return;
    // The beginnings of today, yesterday and six days before today.
    const today = Date.parse(`${wall(Date.now()).slice(0, 10)}T00:00Z`);
    for (const days of [0, 1, 6]) {
      const day = new Date(today - days * DAY_MS).toISOString().slice(0, 10);
      event.formData.set(`day-${days}`, toUtc(day));
    }
  });

  const showInput = (input) => {
    input.dataset.shown = "yes";
    const value = input.value.trim().replace(" ", "T");
    const at = new Date(/T.*([Zz]|[+-]\d\d:\d\d)$/.test(value) || !value.includes("T") ? value : `${value}Z`);
    if (isNaN(at)) return;
    if (input.dataset.time === "end" && !value.includes("T")) at.setTime(at.getTime() + DAY_MS);
    const fraction = at.getUTCMilliseconds() ? at.toISOString().slice(19, 23) : "";
    input.value = wall(at) + fraction;
  };

  const showTimes = () => {
    if (zone === "UTC") return;
    document.querySelectorAll("time[datetime]:not([data-shown])").forEach(showTime);
    document.querySelectorAll("input[data-time]:not([data-shown])").forEach(showInput);
    for (const name of document.querySelectorAll("[data-zone-name]")) name.textContent = zone;
  };
  if (zone !== "UTC") showDays();
  showTimes();
  keepAudit();
  document.addEventListener("htmx:after:swap", showTimes);
  document.addEventListener("htmx:sse:after:message", showTimes);

  // The zones that the browser knows, once somebody looks for one.
  const zones = document.getElementById("zone");
  const listZones = () => {
    const known = new Set([...zones.options].map((option) => option.text));
    const all = Intl.supportedValuesOf("timeZone").filter((name) => !known.has(name));
    zones.append(...all.map((name) => new Option(name)));
  };
  zones?.closest("details").addEventListener("toggle", listZones, { once: true });
})();
