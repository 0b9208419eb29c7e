// Keeps the live part of a page up to date while somebody looks at it. Without this the page is read as it was loaded.
"use strict";
const live = document.getElementById("live");
let events = null;
let isPressed = false;

// A link or a button that is there again after an update.
const named = (element) => element.getAttribute("href") ?? element.getAttribute("aria-label");

function update(html) {
  // Not under a reader's selection, nor between the two halves of a click.
  if (isPressed || !getSelection().isCollapsed) return;
  const focused = live.contains(document.activeElement) ? named(document.activeElement) : null;
  live.innerHTML = html;
  if (focused === null) return;
  const again = [...live.querySelectorAll("a, button")].find((element) => named(element) === focused);
  again?.focus({ preventScroll: true });
}

function follow() {
  events = new EventSource(location.pathname + location.search);
  events.onmessage = (event) => {
    update(event.data);
    live.removeAttribute("data-old");
  };
  const old = () => live.setAttribute("data-old", "");
  events.onerror = old;
  events.addEventListener("old", old);
}

if (live) {
  follow();
  document.addEventListener("pointerdown", () => { isPressed = true; });
  for (const end of ["pointerup", "pointercancel"]) document.addEventListener(end, () => { isPressed = false; });
  // Who does not look takes none of the places of those who do.
  document.addEventListener("visibilitychange", () => {
    events.close();
    if (!document.hidden) follow();
  });
}
