// Keeps the overview up to date while somebody looks at it. Without this the page is read as it was loaded.
"use strict";
if (location.pathname === "/") {
  const main = document.querySelector("main");
  const events = new EventSource("/dashboard/live");
  events.onmessage = (event) => {
    // Not under a reader's selection.
    if (getSelection().isCollapsed) main.innerHTML = event.data;
    main.removeAttribute("data-old");
  };
  const old = () => main.setAttribute("data-old", "");
  events.onerror = old;
  events.addEventListener("old", old);
}
