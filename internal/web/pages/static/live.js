// Keeps the parts of a page that are marked data-live up to date. The server tells by events that something has changed; the
// page is then asked for again, and its parts are changed where they differ, so that what somebody reads, has opened, marked
// or focused stays. Rows of a list that is marked data-hold neither come nor go by themselves: a notice says how many are
// new, and shows them. Without events the page is asked for every 30 seconds. Only a page that is visible listens or asks.
// Forms are never part of it.
"use strict";
(() => {
  // What takes longer than the page itself is fetched after it. Without scripts it is a link.
  for (const part of window.htmx ? document.querySelectorAll("[data-load]") : []) {
    htmx.ajax("GET", part.dataset.load, { source: part, target: part, select: "#" + part.id, swap: "outerHTML" }).catch(() => {});
  }

  // Keys for who reviews many, unless they are off: j and k walk through rows or files, a, c, r and m open an act, / the search, ? the list.
  const keys = document.getElementById("keys");
  const acts = { a: "approve", c: "comment", r: "request-changes", m: "merge" };
  keys?.querySelector("[name=keys]")?.addEventListener("change", (event) => { localStorage.setItem("keys", event.target.checked ? "on" : "off"); });
  const on = () => localStorage.getItem("keys") !== "off";
  if (keys) keys.querySelector("[name=keys]").checked = on();
  let due = null; // the sheet that opens when its key is let go: before that, the key could be typed into it
  document.addEventListener("keyup", () => { due?.showPopover(); due = null; });
  document.addEventListener("keydown", (event) => {
    due = null;
    if (!on() || event.ctrlKey || event.altKey || event.metaKey || event.target.closest("input, select, textarea") || document.querySelector(":popover-open")) return;
    const stops = [...document.querySelectorAll("main .list a.t, main .rows tbody th a, main details.file > summary")];
    const to = stops[stops.indexOf(document.activeElement) + { j: 1, k: -1 }[event.key]];
    const sheet = event.key === "?" ? keys : document.getElementById("do-" + acts[event.key]);
    if (to) to.focus();
    else if (event.key === "n" && held.size) show();
    else if (event.key === "/" && document.getElementById("q")) document.getElementById("q").focus();
    else if (sheet?.popover) due = sheet;
    else return;
    event.preventDefault();
  });

  document.addEventListener("click", (event) => {
    const copy = event.target.closest?.(".copy");
    if (copy) navigator.clipboard?.writeText(copy.previousElementSibling.textContent).then(() => { copy.firstChild.textContent = "Copied"; });
  });

  document.addEventListener("toggle", (event) => { if (event.newState === "open" && event.target.popover) event.target.querySelector("textarea")?.focus(); }, true);

  const { events, at } = document.body.dataset;
  const parts = [...document.querySelectorAll("[data-live]")];
  const regions = parts.map((part) => "#" + part.id);
  if (!regions.length || !window.htmx) return;

  const status = document.getElementById("status");
  const notice = document.getElementById("fresh");
  const gap = 1000 * Math.max(...parts.map((part) => Number(part.dataset.every || 2))); // between two refreshes
  const topics = parts.flatMap((part) => (part.dataset.topics || "audit").split(" ")); // what the page shows
  const pause = 30000; // between two refreshes without events
  const patience = 3; // failures of the stream before it is given up for a while
  let seen = at; // the position up to which the server has told us
  const rows = ":is(tbody > tr, .list > li, .feed > li)";
  const held = new Map(); // what is new in lists that somebody reads, by their ids
  const none = () => false;
  let free = none; // whether a list may change at once
  let source = null, failures = 0, waiting = null, planned = null, last = 0, problem = "";

  const say = (text) => {
    if (status.textContent !== text) status.textContent = text;
    status.previousElementSibling.className = "dot" + (text === "live" ? " good" : text.startsWith("not live") ? " bad" : "");
  };

  function listen() {
    hush();
    source = new EventSource(events + "?after=" + encodeURIComponent(seen));
    source.onopen = () => { failures = 0; say("live"); };
    source.addEventListener("change", (event) => {
      seen = event.lastEventId;
      if (topics.includes(JSON.parse(event.data).topic)) soon();
    });
    source.onerror = () => {
      failures++;
      if (source.readyState === EventSource.CLOSED || failures >= patience) poll(); // else the browser tries again by itself
    };
  }

  // poll does without events for a while, and then tries them again; if they fail at once, it is back here.
  function poll() {
    hush();
    failures = patience - 1;
    waiting = setTimeout(listen, pause);
    refresh();
  }

  function hush() {
    source?.close();
    source = null;
    clearTimeout(waiting);
  }

  function soon() { planned ??= setTimeout(() => refresh(), Math.max(0, last + gap - Date.now())); }

  // refresh asks for the page and takes over what has changed; whole takes over new rows as well, unless the focus is there.
  async function refresh(whole) {
    clearTimeout(planned);
    planned = null;
    last = Date.now();
    problem = "";
    await htmx.ajax("GET", location.pathname + location.search, { source: regions[0], target: regions[0], handler: (_, { xhr }) => {
      if (xhr.status === 200) take(new DOMParser().parseFromString(xhr.responseText, "text/html"), whole);
      else problem = xhr.status === 401 ? "not live: sign in again" : "not live: the server answers " + xhr.status;
    } }).catch(() => {}); // htmx:sendError has said why
    say(problem || (source ? "live" : "refreshing every 30 s"));
    if (problem && source) planned ??= setTimeout(() => refresh(), pause);
  }

  function take(page, whole) {
    if (whole) free = (list) => !list.contains(document.activeElement);
    for (const selector of regions) {
      const fresh = page.querySelector(selector);
      if (fresh) morph(document.querySelector(selector), fresh);
    }
    free = none;
    tell();
  }

  function morph(old, fresh) {
    Idiomorph.morph(old, fresh, { restoreFocus: false, callbacks: {
      beforeNodeMorphed: (node, next) => node.nodeType === Node.TEXT_NODE ? !marked(node) : !node.matches("[data-hold]") || !hold(node, next),
      beforeAttributeUpdated: (name, node) => !(name === "open" && node.localName === "details"), // people open and close them
      beforeNodeRemoved: (node) => node.nodeType !== Node.ELEMENT_NODE || !node.matches(".talk > li"),
    } });
  }

  // marked reports whether the text that a person has marked begins or ends in the node.
  function marked(node) {
    const selection = getSelection();
    return !selection.isCollapsed && (selection.anchorNode === node || selection.focusNode === node);
  }

  // rowsOf are the rows of a list by what they are about.
  function rowsOf(list) {
    const name = (row) => row.id || [...row.querySelectorAll("a")].slice(0, 1).map((a) => a.getAttribute("href") + a.textContent).join();
    return new Map([...list.querySelectorAll(rows)].map((row) => [name(row), row]));
  }

  // hold reports whether the next state of a list has to wait for the person who reads it. The rows that stay are brought up
  // to date all the same.
  function hold(list, next) {
    const here = rowsOf(list), there = rowsOf(next);
    held.delete(list.id);
    if (!here.size || free(list) || [...here.keys()].join("\n") === [...there.keys()].join("\n")) return false;
    const added = [...there.keys()].filter((name) => !here.has(name)).length;
    held.set(list.id, { next, added, gone: here.size + added - there.size, all: added > 1 && added === there.size });
    for (const [name, row] of here) if (there.has(name)) morph(row, there.get(name));
    return true;
  }

  // tell says what the list with the most to show holds.
  function tell() {
    const [most] = [...held.values()].sort((a, b) => b.added + b.gone - a.added - a.gone);
    if (!most) { notice.replaceChildren(); return; }
    const parts = [most.added && most.added + (most.all ? " or more new" : " new"), most.gone > most.added && most.gone - most.added + " gone"];
    const text = (parts.filter(Boolean).join(", ") || "another order") + ", show";
    if (notice.textContent === text) return;
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "btn main", textContent: text, onclick: show });
    if (notice.firstChild) notice.firstChild.textContent = text;
    else notice.append(button);
  }

  // show takes over what is held, and leads to the first row.
  function show() {
    const lists = [...held.keys()].map((id) => document.getElementById(id));
    free = () => true;
    for (const list of lists) morph(list, held.get(list.id).next);
    free = none;
    tell();
    lists.map((list) => list.querySelector(rows + " a")).find(Boolean)?.focus();
  }

  document.body.addEventListener("htmx:sendError", () => { problem = "not live: the server does not answer"; });
  document.addEventListener("visibilitychange", () => {
    hush();
    if (document.hidden) return;
    listen();
    refresh(true); // nobody has read it meanwhile
  });
  addEventListener("pagehide", hush);
  if (!document.hidden) listen();
})();
