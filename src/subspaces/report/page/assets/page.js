
"use strict";
(() => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  root.classList.add("js");

  // --- theme: the system's, until the reader chooses ---
  const remember = (value) => { try { localStorage.setItem("subspaces-theme", value); } catch { /* private mode */ } };
  const remembered = () => { try { return localStorage.getItem("subspaces-theme"); } catch { return null; } };
  if (["light", "dark"].includes(remembered())) root.dataset.theme = remembered();
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);

  document.addEventListener("DOMContentLoaded", () => {
    const byId = (id) => document.getElementById(id);
    const all = (selector, within = document) => [...within.querySelectorAll(selector)];

    const theme = byId("theme");
    const showTheme = () => theme.setAttribute("aria-pressed", String(isDark()));
    theme.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      remember(root.dataset.theme);
      showTheme();
    });
    dark.addEventListener("change", showTheme);
    showTheme();

    // --- filter: the state is in the address, the controls and the page follow it ---
    const cells = all("td[data-number]");
    const proofs = new Map(all("details[data-number]").map((one) => [one.dataset.number, one]));
    const rows = new Map(all("details[data-row-id]").map((one) => [one.dataset.rowId, one]));
    const shows = all("button[data-show]");
    const toggles = all("button[data-verdict]");
    const table = byId("filter-table"), words = byId("filter-words"), count = byId("filter-count");
    const empty = () => ({ verdicts: [], table: "", words: "", show: "", number: "", row: "" });
    let state = empty();

    const read = () => {
      const asked = new URLSearchParams(location.hash.slice(1));
      const known = (name, options) => (options.includes(asked.get(name)) ? asked.get(name) : "");
      state = {
        verdicts: asked.getAll("verdict").filter((one) => toggles.some((toggle) => toggle.dataset.verdict === one)),
        table: known("table", [...table.options].map((one) => one.value)),
        words: asked.get("words") ?? "",
        show: known("show", shows.map((one) => one.dataset.show)),
        number: known("number", [...proofs.keys()]),
        row: known("row", [...rows.keys()]),
      };
    };
    const write = () => {
      const said = new URLSearchParams();
      state.verdicts.forEach((one) => said.append("verdict", one));
      for (const name of ["table", "words", "show", "number", "row"]) if (state[name]) said.set(name, state[name]);
      history.replaceState(null, "", `#${said}`);
    };
    const filtering = () => Boolean(state.verdicts.length || state.table || state.words.trim());
    const fits = (cell) => {
      const wanted = state.words.toLowerCase().split(/\s+/);
      return (!state.verdicts.length || state.verdicts.includes(cell.dataset.verdict))
        && (!state.table || cell.closest("section").dataset.table === state.table)
        && wanted.every((word) => cell.dataset.words.includes(word));
    };
    const show = () => {
      toggles.forEach((one) => one.setAttribute("aria-pressed", String(state.verdicts.includes(one.dataset.verdict))));
      shows.forEach((one) => one.setAttribute("aria-pressed", String(one.dataset.show === state.show)));
      if (state.show) root.dataset.show = state.show; else delete root.dataset.show;
      table.value = state.table;
      if (words.value !== state.words) words.value = state.words;
      const shown = new Set(cells.filter(fits));
      const keeps = (some) => some.some((cell) => shown.has(cell));
      for (const cell of cells) {
        cell.firstElementChild.hidden = !shown.has(cell);
        cell.classList.toggle("off", !shown.has(cell));
        proofs.get(cell.dataset.number).hidden = !shown.has(cell);
      }
      for (const section of all("section.table")) {
        const own = all("td[data-number]", section);
        section.hidden = filtering() && !keeps(own);
        for (const row of all("tr[data-row]", section)) row.hidden = !keeps(all("td[data-number]", row));
        for (const head of all("th[data-column]", section)) {
          const gone = !keeps(own.filter((cell) => cell.dataset.column === head.dataset.column));
          head.hidden = gone;
          all("td[data-column]", section).filter((cell) => cell.dataset.column === head.dataset.column).forEach((cell) => { cell.hidden = gone; });
        }
      }
      count.textContent = `${shown.size} of ${cells.length} numbers shown`;
      byId("filter-none").hidden = shown.size > 0;
    };
    const change = (part) => { state = { ...state, ...part }; write(); show(); };

    toggles.forEach((one) => one.addEventListener("click", () => {
      const name = one.dataset.verdict;
      change({ verdicts: state.verdicts.includes(name) ? state.verdicts.filter((other) => other !== name) : [...state.verdicts, name] });
    }));
    shows.forEach((one) => one.addEventListener("click", () => change({ show: one.dataset.show })));
    table.addEventListener("change", () => change({ table: table.value }));
    words.addEventListener("input", () => change({ words: words.value }));
    byId("filter-clear").addEventListener("click", () => { change(empty()); words.focus(); });

    // --- links within the page keep the filter, and clear it when it hides where they lead ---
    document.addEventListener("click", (event) => {
      const link = event.target.closest("a[href^='#']");
      const number = link && link.getAttribute("href").match(/^#number=(.+)$/)?.[1];
      if (number) { event.preventDefault(); change({ number, row: "" }); open(); return; }
      const target = link && byId(link.getAttribute("href").slice(1));
      if (!target || !filtering()) return;
      event.preventDefault();
      if (target.hidden) change(empty());
      target.scrollIntoView();
      target.focus({ preventScroll: true });
    });

    // --- provenance in a dialog: focus goes in, Escape closes, focus comes back ---
    const dialog = byId("proof");
    const open = () => {
      const proof = proofs.get(state.number) ?? rows.get(state.row);
      if (!proof) { if (dialog.open) dialog.close(); return; }
      byId("proof-title").textContent = proof.dataset.name;
      byId("proof-content").replaceChildren(proof.querySelector(".proof-body").cloneNode(true));
      if (!dialog.open) dialog.showModal();
      dialog.scrollTop = 0;
    };
    cells.forEach((cell) => cell.firstElementChild.addEventListener("click", () => {
      change({ number: cell.dataset.number, row: "" });
      open();
    }));
    all("button[data-row-id]").forEach((one) => one.addEventListener("click", () => {
      change({ row: one.dataset.rowId, number: "" });
      open();
    }));
    dialog.addEventListener("close", () => { if (state.number || state.row) change({ number: "", row: "" }); });
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    byId("proof-close").addEventListener("click", () => dialog.close());

    // --- copy: the clipboard where it is allowed, else the old command, else the text is selected for the reader ---
    const select = (node) => {
      const range = document.createRange();
      range.selectNodeContents(node);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
    };
    const copy = async (node) => {
      try {
        await navigator.clipboard.writeText(node.textContent);
        return "Copied";
      } catch {
        select(node);
        try { if (document.execCommand("copy")) return "Copied"; } catch { /* told below */ }
        return "Selected: press Ctrl+C or ⌘C";
      }
    };
    document.addEventListener("click", async (event) => {
      const button = event.target.closest("button.copy");
      if (!button) return;
      const place = button.closest(".command");
      place.querySelector(".copied").textContent = await copy(place.querySelector("code"));
    });

    const follow = () => { read(); show(); open(); };
    addEventListener("hashchange", follow);
    follow();
  });
})();
