// Leads a browser from an address that it shares with other programs of this machine to the name that it has for itself.
// The name is kept in the storage of this origin, which, unlike a cookie, no other port can read.
(() => {
  "use strict";
  const key = "claudeops-own";
  const kept = (name) => {
    try {
      if (name) localStorage.setItem(key, name);
      return localStorage.getItem(key);
    } catch {
      return name;
    }
  };
  const reaches = (origin, page) => fetch(origin + page + "/reachable", { mode: "no-cors", credentials: "omit", cache: "no-store" });

  const way = document.getElementById("own");
  if (way) {
    const stay = document.getElementById("stay");
    stay.hidden = true;
    const at = kept() || way.origin;
    reaches(at, way.pathname).then(() => {
      kept(at);
      location.replace(at + way.pathname + way.search);
    }, () => {
      stay.hidden = false;
      document.getElementById("go").hidden = true;
    });
    return;
  }
  const again = document.getElementById("again");
  if (again && kept()) {
    reaches(kept(), again.pathname).then(() => location.replace(kept() + again.pathname + again.search), () => {});
  }
})();
