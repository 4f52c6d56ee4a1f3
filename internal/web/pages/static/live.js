// Keeps the parts of a page that are marked data-live up to date. The server tells by events that something has changed; the
// page is then asked for again, and htmx puts its new parts in the place of the old ones. Without events it is asked for
// every 30 seconds. Only a page that is visible listens or asks. Forms are never part of it.
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
  document.addEventListener("keydown", (event) => {
    if (!on() || event.ctrlKey || event.altKey || event.metaKey || event.target.closest("input, select, textarea") || document.querySelector(":popover-open")) return;
    const stops = [...document.querySelectorAll("main .list a.t, main .rows tbody th a, main details.file > summary")];
    const to = stops[stops.indexOf(document.activeElement) + { j: 1, k: -1 }[event.key]];
    const sheet = event.key === "?" ? keys : document.getElementById("do-" + acts[event.key]);
    if (to) to.focus();
    else if (event.key === "/" && document.getElementById("q")) document.getElementById("q").focus();
    else if (sheet?.popover) sheet.showPopover();
    else return;
    event.preventDefault();
  });

  document.addEventListener("toggle", (event) => { if (event.newState === "open" && event.target.popover) event.target.querySelector("textarea")?.focus(); }, true);

  const { events, at } = document.body.dataset;
  const regions = [...document.querySelectorAll("[data-live]")].map((region) => "#" + region.id);
  if (!regions.length || !window.htmx) return;

  const status = document.getElementById("status");
  const gap = 1000 * Number(document.querySelector(regions[0]).dataset.every || 2); // between two refreshes
  const topics = (document.querySelector(regions[0]).dataset.topics || "audit").split(" "); // what the page shows
  const pause = 30000; // between two refreshes without events
  const patience = 3; // failures of the stream before it is given up for a while
  let seen = at; // the position up to which the server has told us
  let source = null, failures = 0, waiting = null, planned = null, last = 0, problem = "";

  const say = (text) => { if (status.textContent !== text) status.textContent = text; };
  const parts = () => regions.map((selector) => document.querySelector(selector));

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

  function soon() { planned ??= setTimeout(refresh, Math.max(0, last + gap - Date.now())); }

  async function refresh() {
    clearTimeout(planned);
    planned = null;
    if (reading()) { planned = setTimeout(refresh, gap); return; }
    last = Date.now();
    problem = "";
    const restore = remember();
    await htmx.ajax("GET", location.pathname + location.search, {
      source: regions[0], target: regions[0], select: regions[0], selectOOB: regions.slice(1).join(","), swap: "outerHTML",
    }).catch(() => {}); // htmx:sendError has said why
    restore();
    say(problem || (source ? "live" : "refreshing every 30 s"));
    if (problem && source) planned ??= setTimeout(refresh, pause);
  }

  // reading reports whether the person has marked text, which a refresh would take away.
  function reading() {
    const selection = getSelection();
    return !selection.isCollapsed && parts().some((part) => part.contains(selection.anchorNode));
  }

  // remember notes what is open and what has the focus, and returns what brings it back.
  function remember() {
    const name = (element) => element.tagName + (element.getAttribute("href") ?? element.textContent);
    const all = (selector) => parts().flatMap((part) => [...part.querySelectorAll(selector)]);
    const open = new Set(all("details[open] > summary").map(name));
    const active = parts().some((part) => part.contains(document.activeElement)) ? document.activeElement : null;
    const same = (element) => name(element) === name(active);
    const index = active ? all(active.tagName).filter(same).indexOf(active) : -1;
    return () => {
      for (const summary of all("details > summary")) if (open.has(name(summary))) summary.parentElement.open = true;
      if (active && !active.isConnected) all(active.tagName).filter(same)[index]?.focus({ preventScroll: true });
    };
  }

  document.body.addEventListener("htmx:responseError", (event) => {
    const code = event.detail.xhr.status;
    problem = code === 401 ? "not live: sign in again" : "not live: the server answers " + code;
  });
  document.body.addEventListener("htmx:sendError", () => { problem = "not live: the server does not answer"; });
  document.addEventListener("visibilitychange", () => { hush(); if (!document.hidden) listen(); });
  addEventListener("pagehide", hush);
  if (!document.hidden) listen();
})();
