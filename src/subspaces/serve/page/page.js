"use strict";
const $ = (id) => document.getElementById(id);
const TABS = ["search", "entail", "hierarchy"];
let status = null;

/* An element with attributes and children; texts become text nodes, never markup. */
function make(tag, attributes = {}, ...children) {
  const svg = ["svg", "rect", "line", "text", "title"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") node.addEventListener("click", value);
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

function bar(share, kind = "") {
  const inner = make("span");
  inner.style.width = `${100 * Math.min(1, Math.max(0, share))}%`;
  return make("span", { class: `track ${kind}`, "aria-hidden": "true" }, inner);
}

const percent = (share) => `${(100 * share).toFixed(1)} %`;
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

/* --- asking: the latest request of a tab wins ---------------------------------------------------------------------- */

const running = {};

async function ask(tab, address, body) {
  running[tab]?.abort();
  const control = (running[tab] = new AbortController());
  const options = { signal: control.signal };
  if (body !== undefined) {
    Object.assign(options, { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });
  }
  let answer, content;
  try {
    answer = await fetch(address, options);
    content = await answer.json();
  } catch (error) {
    if (error.name === "AbortError") return null;
    throw { error: "The server does not answer. Is it still running?" };
  }
  if (!answer.ok) throw content;
  return content;
}

/* Runs one request of a tab and shows its state: busy, answered, or refused. */
async function run(tab, request, show, refuse) {
  const [told, mistake] = [$(`${tab}-told`), $(`${tab}-mistake`)];
  mistake.hidden = true;
  const timer = setTimeout(() => (told.textContent = "Working …"), 150);
  try {
    const answer = await request();
    clearTimeout(timer);
    if (answer !== null) told.textContent = show(answer) ?? "";
  } catch (error) {
    clearTimeout(timer);
    told.textContent = "";
    if (error instanceof Error) throw error;
    mistake.replaceChildren(capital(error.error));
    mistake.hidden = false;
    refuse(error);
  }
}

/* --- search -------------------------------------------------------------------------------------------------------- */

/* Positions of the server count characters; those of the browser count UTF-16 units. */
const units = (text, characters) => [...text].slice(0, characters).join("").length;

function search(query) {
  const request = { query, top: Number($("top").value) };
  if ($("method").value) request.method = $("method").value;
  run("search", () => ask("search", "/api/search", request), showHits, (error) => {
    $("terms").hidden = true;
    $("hits").replaceChildren();
    $("query").setAttribute("aria-invalid", "true");
    if (error.at === null || error.at === undefined) return;
    const at = units(query, error.at);
    const shown = query.replace(/\s/g, " ");
    $("search-mistake").append(make("pre", {}, `${shown}\n${" ".repeat(at)}^`));
    if (document.activeElement === $("query")) $("query").setSelectionRange(at, at);
  });
}

const named = (term) => `${term.excluded ? "✕ " : ""}${term.text}`;

function showHits(answer) {
  $("query").removeAttribute("aria-invalid");
  $("terms").replaceChildren(...answer.terms.map((term) =>
    make("span", term.excluded ? { class: "excluded" } : {}, `${named(term)}${term.excluded ? " · excluded" : ""} · rank ${term.rank.toFixed(1)}`)));
  $("terms").hidden = false;
  $("hits").replaceChildren(...answer.hits.map((hit) => {
    const bars = make("dl", { class: "bars" });
    answer.terms.forEach((term, number) => {
      bars.append(
        make("dt", { title: term.text }, named(term)),
        make("dd", {}, bar(hit.inclusions[number], term.excluded ? "excluded" : "")),
        make("dd", { class: "value" }, hit.inclusions[number].toFixed(2)));
    });
    return make("li", {},
      make("span", { class: "place" }, `${hit.place}.`),
      make("span", { class: "text" }, hit.text),
      make("span", { class: "score" }, `score ${hit.score.toFixed(3)} · rank ${hit.rank.toFixed(1)}`),
      bars);
  }));
  const excluded = answer.terms.some((term) => term.excluded) ? "; of an excluded term (✕) it should be small" : "";
  return `${plural(answer.hits.length, "document")} of ${status ? status.count.toLocaleString("en") : "all"} for ${answer.query}. Bars: the share of a document that lies in a term${excluded}.`;
}

/* --- entailment ---------------------------------------------------------------------------------------------------- */

function entail(premise, hypothesis) {
  run("entail", () => ask("entail", "/api/entail", { premise, hypothesis }), showVerdict, () => ($("verdict").hidden = true));
}

function showVerdict(answer) {
  const rows = [];
  for (const [title, classes] of [["two classes", answer.two_way], ["three classes", answer.three_way]]) {
    if (!classes) continue;
    rows.push(make("dt", { class: "group" }, title));
    for (const [name, share] of Object.entries(classes)) {
      rows.push(make("dt", {}, name), make("dd", {}, bar(share)), make("dd", { class: "value" }, percent(share)));
    }
  }
  $("probabilities").replaceChildren(...rows);
  $("picture").replaceChildren(picture(answer), make("figcaption", {},
    `${percent(answer.inclusion)} of the premise lies in the hypothesis, ${percent(answer.inclusion_reversed)} of the hypothesis in the premise. ` +
    "The premise entails the hypothesis where it lies inside; a general text has a large rank."));
  $("verdict").hidden = false;
  const cut = [answer.premise_cut && "premise", answer.hypothesis_cut && "hypothesis"].filter(Boolean);
  const best = Object.entries(answer.three_way ?? answer.two_way).sort((a, b) => b[1] - a[1])[0];
  const warning = cut.length ? ` The ${cut.join(" and the ")} ${cut.length > 1 ? "are" : "is"} longer than the model reads: the end is ignored.` : "";
  return `${capital(best[0])}, ${percent(best[1])}.${warning}`;
}

/* Two intervals whose lengths are the ranks and whose overlap is Tr(P_premise P_hypothesis). */
function picture(answer) {
  const { premise_rank: p, hypothesis_rank: h, shared_rank: shared } = answer;
  const [left, width] = [8, 384];
  const scale = width / Math.max(p + h - shared, 1e-9);
  const at = (rank) => left + scale * rank;
  const svg = make("svg", { viewBox: "0 0 400 138", role: "img", "aria-label":
    `Premise of rank ${p.toFixed(1)}, hypothesis of rank ${h.toFixed(1)}, shared ${shared.toFixed(1)}` });
  const interval = (kind, label, y, start, rank, labelY) => {
    svg.append(make("rect", { class: kind, x: at(start), y, width: Math.max(2, scale * rank), height: 22, rx: 4 }));
    const end = at(start) > 200;
    svg.append(make("text", { x: end ? at(start + rank) : at(start), y: labelY, "text-anchor": end ? "end" : "start" },
      `${label}, rank ${rank.toFixed(1)} of ${answer.dim}`));
  };
  svg.append(make("rect", { class: "shared", x: at(h - shared), y: 22, width: Math.max(1, scale * shared), height: 82, rx: 3 }));
  interval("hypothesis", "hypothesis", 26, 0, h, 16);
  interval("premise", "premise", 78, h - shared, p, 122);
  svg.append(make("text", { class: "small", x: at(h - shared / 2), y: 67, "text-anchor":
    at(h - shared / 2) > 350 ? "end" : at(h - shared / 2) < 50 ? "start" : "middle" }, `shared ${shared.toFixed(1)}`));
  return svg;
}

/* --- hierarchy ----------------------------------------------------------------------------------------------------- */

const MARKS = { given: "given edge", closure: "follows from edges", "": "" };

function showNode(name) {
  run("node", () => ask("node", `/api/hierarchy/node?top=20&name=${encodeURIComponent(name)}`), (answer) => {
    for (const side of ["ancestors", "descendants"]) {
      const lines = answer[side].map((one) =>
        make("li", one.entailed ? {} : { class: "below" },
          make("button", { type: "button", onclick: () => go("hierarchy", { node: one.name }) }, one.name),
          make("span", { class: "score" }, `${one.inclusion.toFixed(3)} · rank ${one.rank.toFixed(1)}`),
          bar(one.inclusion),
          make("span", { class: "mark" }, [MARKS[one.known], one.entailed ? "" : "below the threshold"].filter(Boolean).join(", "))));
      $(side).replaceChildren(...(lines.length ? lines : [make("li", {}, "none")]));
    }
    $("relatives").hidden = false;
    return `${answer.name}: rank ${answer.rank.toFixed(2)} of ${answer.dim}. An edge is entailed from an inclusion of ${answer.threshold.toFixed(3)}.`;
  }, (error) => {
    $("relatives").hidden = true;
    if (error.close?.length) $("node-mistake").append(make("div", {}, "Close to it: ", ...error.close.map(nodeButton)));
  });
}

const nodeButton = (name) => make("button", { type: "button", onclick: () => go("hierarchy", { node: name }) }, name);

async function complete() {
  try {
    const answer = await ask("names", `/api/hierarchy/nodes?top=20&like=${encodeURIComponent($("node").value.slice(0, 200))}`);
    if (answer) $("names").replaceChildren(...answer.names.map((name) => make("option", { value: name })));
  } catch { /* no suggestions */ }
}

/* --- tabs and addresses: everything that is shown has an address, so that Back works and a result can be shared ---- */

function go(tab, values = {}) {
  const fields = new URLSearchParams(values).toString();
  const address = `#${tab}${fields ? `?${fields}` : ""}`;
  if (location.hash === address) route();
  else location.hash = address;
}

function route() {
  const [name, fields] = [location.hash.slice(1).split("?")[0], new URLSearchParams(location.hash.split("?").slice(1).join("?"))];
  const tab = TABS.includes(name) ? name : "search";
  for (const other of TABS) {
    const chosen = other === tab;
    $(other).hidden = !chosen;
    $(`tab-${other}`).setAttribute("aria-selected", String(chosen));
    $(`tab-${other}`).tabIndex = chosen ? 0 : -1;
  }
  if (tab === "search" && fields.has("query")) {
    $("query").value = fields.get("query");
    search($("query").value);
  }
  if (tab === "entail" && fields.has("premise")) {
    $("premise").value = fields.get("premise");
    $("hypothesis").value = fields.get("hypothesis") ?? "";
    entail($("premise").value, $("hypothesis").value);
  }
  if (tab === "hierarchy" && fields.has("node")) {
    $("node").value = fields.get("node");
    showNode($("node").value);
  }
}

function listen() {
  for (const [place, tab] of TABS.entries()) {
    $(`tab-${tab}`).addEventListener("click", () => go(tab));
    $(`tab-${tab}`).addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const to = step ? (place + step + TABS.length) % TABS.length : { Home: 0, End: TABS.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      go(TABS[to]);
      $(`tab-${TABS[to]}`).focus();
    });
  }
  const submit = (form, action) => $(form).addEventListener("submit", (event) => { event.preventDefault(); action(); });
  submit("search-form", () => go("search", { query: $("query").value }));
  submit("entail-form", () => go("entail", { premise: $("premise").value, hypothesis: $("hypothesis").value }));
  submit("node-form", () => go("hierarchy", { node: $("node").value }));
  for (const field of ["top", "method"]) $(field).addEventListener("change", () => $("query").value.trim() && search($("query").value));
  for (const field of ["premise", "hypothesis"]) {
    $(field).addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      $("entail-form").requestSubmit();
    });
  }
  $("swap").addEventListener("click", () => go("entail", { premise: $("hypothesis").value, hypothesis: $("premise").value }));
  for (const button of document.querySelectorAll("[data-insert]")) {
    button.addEventListener("click", () => {
      const box = $("query");
      box.setRangeText(button.dataset.insert, box.selectionStart, box.selectionEnd, "end");
      box.focus();
    });
  }
  for (const button of $("search-examples").querySelectorAll("button")) {
    button.addEventListener("click", () => go("search", { query: button.textContent }));
  }
  let waiting = 0;
  $("node").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(complete, 120); });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select");
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if ($("search").hidden) go("search");
    setTimeout(() => $("query").focus());
  });
  addEventListener("hashchange", route);
}

async function start() {
  listen();
  try {
    status = await ask("status", "/api/status");
    const { limits, hierarchy } = status;
    $("about").textContent = `${plural(status.count, "document")} (${status.documents}), subspaces of R${superscript(status.dim)}`;
    $("model").textContent = `Model ${status.model}${status.backbone ? ` on ${status.backbone}` : ""}, weights ${status.weights.slice(0, 12)}`;
    $("limits").textContent = `At most ${limits.query_characters.toLocaleString("en")} characters, ${limits.terms} terms, nesting ${limits.nesting}.`;
    $("method").append(...status.methods.map((name) => make("option", { value: name }, name)));
    $("no-hierarchy").hidden = hierarchy !== null;
    $("has-hierarchy").hidden = hierarchy === null;
    if (hierarchy) $("node-examples").replaceChildren(`${plural(hierarchy.nodes, "node")} of ${hierarchy.name}. The most general:`, ...hierarchy.examples.map(nodeButton));
  } catch (error) {
    $("about").textContent = error.error ?? "The server does not answer.";
  }
  route();
  if (matchMedia("(hover: hover)").matches && !$("search").hidden) $("query").focus();
}

const superscript = (number) => [...String(number)].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("");

start();
