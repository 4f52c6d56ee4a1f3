// Presses the button of a one-time address as soon as somebody sees the page. A browser that fetches or prepares pages ahead
// shows them to nobody, and uses nothing up.
(() => {
  "use strict";
  let sent = false;
  const press = () => {
    if (sent || document.prerendering || document.visibilityState !== "visible") return;
    sent = true;
    document.getElementById("once").requestSubmit();
  };
  document.addEventListener("prerenderingchange", press);
  document.addEventListener("visibilitychange", press);
  press();
})();
