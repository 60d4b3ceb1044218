// Keeps the page up to date, filters it, and shows times as ages. The page can be read without this script.
"use strict";

const RETRY = 10_000; // milliseconds until a server that would not serve us is asked again
const connection = document.getElementById("connection");
let stream = null;
let version = document.body.dataset.version;
let retry = 0;

// Times

function ageOf(time) {
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(time.dateTime)) / 1000));
  if (seconds < 90) return `${seconds} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86400)} days ago`;
}

function tellAges(within) {
  for (const time of within.querySelectorAll("time")) {
    if (!time.title) time.title = time.textContent;
    const text = ageOf(time);
    if (time.textContent !== text) time.textContent = text;
  }
}

// The tree of queues. What is folded stays so when queues change, and when one comes back to the page. A filter looks
// into it. Where a browser blocks storage, what is folded is forgotten with the page.

const FOLDED = "folded";
const folded = new Set(readFolded());

function readFolded() {
  try {
    return JSON.parse(sessionStorage.getItem(FOLDED) ?? "[]");
  } catch {
    return [];
  }
}

function keepFolded() {
  try {
    sessionStorage.setItem(FOLDED, JSON.stringify([...folded]));
  } catch {
    // the page itself still knows
  }
}

function isBelowFolded(element) {
  return folded.size > 0 && (element.dataset.above ?? "").split(" ").some((above) => folded.has(above));
}

document.addEventListener("click", ({ target }) => {
  const button = target.closest?.(".fold");
  if (!button) return;
  const { id } = button.closest(".card");
  if (!folded.delete(id)) folded.add(id);
  keepFolded();
  applyFilter(document.getElementById("queues-rows"));
});

// Copying commands. Browsers allow it only on the local host and over TLS.

if (navigator.clipboard) document.documentElement.classList.add("can-copy");

document.addEventListener("click", async ({ target }) => {
  const button = target.closest?.(".copy");
  if (!button) return;
  await navigator.clipboard.writeText(button.parentElement.querySelector("pre").textContent.trim());
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
});

// Sorting a table whose rows are all there: numbers and amounts by size, times by time, the rest as text.

const UNITS = { m: 1e-3, k: 1e3, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60 };
const sorted = new Map(); // by the id of the section: which column, and in which direction

function valueOf(row, column) {
  const cell = row.cells[column];
  const time = cell.querySelector("time");
  if (time) return Date.parse(time.dateTime);
  const text = cell.textContent.trim();
  const [, number, unit] = /^(?:[a-z0-9./-]+ )?(-?\d+(?:\.\d+)?)([kKMGTPEm]i?)?%?(?:,|$)/.exec(text) ?? [];
  return number === undefined ? text : Number(number) * (UNITS[unit] ?? 1);
}

function compare(one, other) {
  if (typeof one === typeof other) return typeof one === "number" ? one - other : one.localeCompare(other);
  return typeof one === "number" ? -1 : 1;
}

function sortTable(section) {
  const { column, direction } = sorted.get(section.id) ?? {};
  const body = section.querySelector("tbody");
  const head = section.querySelectorAll("thead th")[column];
  if (!body || !head || !head.querySelector(".sort")) return;
  for (const each of section.querySelectorAll("thead th")) each.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
  const rows = [...body.rows].map((row) => [valueOf(row, column), row]);
  rows.sort(([one], [other]) => direction * compare(one, other));
  body.append(...rows.map(([, row]) => row));
}

document.addEventListener("click", ({ target }) => {
  const head = target.closest?.(".sort")?.closest("th");
  if (!head) return;
  const section = head.closest("section");
  const direction = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  sorted.set(section.id, { column: head.cellIndex, direction });
  sortTable(section);
});

// The filter

const form = document.getElementById("filter");

function isWanted(element, text, state) {
  if (!element.dataset.name.includes(text)) return false;
  return !state || element.dataset.states === undefined || element.dataset.states.split(" ").includes(state);
}

function applyFilter(within) {
  if (!form) return;
  const text = form.q.value.trim().toLowerCase();
  const state = form.show.value;
  const found = within.dataset && within.dataset.name !== undefined ? [within] : within.querySelectorAll("[data-name]");
  for (const element of found) {
    element.hidden = !isWanted(element, text, state) || (!text && !state && isBelowFolded(element));
    const button = element.querySelector(".fold");
    if (button) button.setAttribute("aria-expanded", String(!folded.has(element.id)));
  }
}

function countMatches() {
  if (!form) return;
  const filtered = form.q.value.trim() || form.show.value;
  const cards = document.querySelectorAll(".card");
  const shown = document.querySelectorAll(".card:not([hidden])");
  document.getElementById("matches").value = filtered ? `${shown.length} of ${cards.length} quotas and queues` : "";
}

function filterAll() {
  applyFilter(document);
  askWaiting();
  countMatches();
  const asked = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
  history.replaceState(null, "", `${location.pathname}${asked.size ? `?${asked}` : ""}${location.hash}`);
}

if (form) {
  let due = 0;
  form.addEventListener("input", () => {
    clearTimeout(due);
    due = setTimeout(filterAll, 60);
  });
}

// Changes

const asOpened = {
  beforeAttributeUpdated: (name, element) => !(name === "open" && element.tagName === "DETAILS"),
};

function elementOf(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content.firstElementChild;
}

function put({ id, row_of, after, html }) {
  const element = elementOf(html);
  tellAges(element);
  applyFilter(element);
  const known = document.getElementById(id);
  if (known) {
    Idiomorph.morph(known, element, { callbacks: asOpened });
    return;
  }
  const list = document.getElementById(`${row_of}-rows`);
  if (!list) return;
  const before = after && document.getElementById(after);
  if (before) before.after(element);
  else list.prepend(element);
}

// Of many waiting pods the server sends only the first in turn. With a filter, the first that match may be others.
const CALM = 1000; // milliseconds between two such questions
let asking = false;
let askAgain = false;

async function askWaiting() {
  if (asking) {
    askAgain = true;
    return;
  }
  asking = true;
  try {
    const answer = await fetch(`waiting?q=${encodeURIComponent(form.q.value.trim())}`, { cache: "no-store" });
    if (answer.ok) put({ id: "waiting", html: await answer.text() });
  } catch {
    // the next change asks again
  }
  setTimeout(() => {
    asking = false;
    if (askAgain) {
      askAgain = false;
      askWaiting();
    }
  }, CALM);
}

async function reload() {
  const answer = await fetch(location.href, { cache: "no-store" });
  const made = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = made.getElementById("main");
  tellAges(fresh);
  for (const id of sorted.keys()) {
    const section = fresh.querySelector(`#${CSS.escape(id)}`);
    if (section) sortTable(section);
  }
  Idiomorph.morph(document.getElementById("main"), fresh, { ignoreActiveValue: true, callbacks: asOpened });
  applyFilter(document);
  version = made.body.dataset.version;
}

function take(event) {
  const news = JSON.parse(event.data);
  if (news.full) {
    tell("not live: too many look on", "broken");
    disconnect();
    retry = setTimeout(connect, RETRY);
    return;
  }
  if (event.lastEventId) version = event.lastEventId;
  if (news.reload) {
    reload().catch(() => tell("not live: the server does not answer", "broken"));
    return;
  }
  for (const change of news.changed) {
    if (change.id === "waiting" && form.q.value.trim()) askWaiting();
    else put(change);
  }
  for (const id of news.removed) document.getElementById(id)?.remove();
  if (news.changed.length || news.removed.length) countMatches();
}

function tell(text, state) {
  if (connection.textContent === text) return;
  connection.textContent = text;
  connection.className = state;
}

function connect() {
  clearTimeout(retry);
  if (stream || document.hidden || !document.body.dataset.live) return;
  stream = new EventSource(`${document.body.dataset.live}?since=${encodeURIComponent(version)}`);
  stream.onopen = () => tell("live", "live");
  stream.onmessage = take;
  stream.onerror = () => {
    tell(`not live: no connection since ${new Date().toLocaleTimeString()}`, "broken");
    if (stream && stream.readyState === EventSource.CLOSED) {
      disconnect();
      retry = setTimeout(connect, RETRY);
    }
  };
}

function disconnect() {
  if (stream) stream.close();
  stream = null;
}

// A page in the background asks for nothing, since nobody looks at it. It catches up when it is shown again.
document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
window.addEventListener("pagehide", disconnect);
window.addEventListener("pageshow", connect);

document.documentElement.classList.add("with-script");
applyFilter(document);
tellAges(document);
setInterval(() => tellAges(document), 1000);
countMatches();
connect();
