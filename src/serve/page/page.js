// The page without a reload: live changes, the slider, keys. Without this script every state is a link or a form.
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const kept = (() => { try { return localStorage.getItem("crewlog-theme"); } catch { return null; } })();
  if (kept) root.dataset.theme = kept;
  const $ = (query, from = document) => from.querySelector(query);
  const all = (query, from = document) => [...from.querySelectorAll(query)];
  const grouped = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");
  let main, source, turned = false, path = location.pathname, lostAt, playing, pressed = false, composing = false, waiting;

  // Times: in the reader's zone, and as ages.
  const age = (ms) => {
    const s = Math.abs(ms) / 1000;
    const text = s < 90 ? `${Math.round(s)} s` : s < 5400 ? `${Math.round(s / 60)} min` : s < 172800 ? `${Math.round(s / 3600)} h` : `${Math.round(s / 86400)} d`;
    return ms < -1000 ? `${text} left` : `${text} ago`;
  };
  // The clock of the log may not be the reader's.
  let skew = 0;
  const now = () => main.dataset.live === "true" ? Date.now() + skew : main.dataset.now / 1000;
  const two = (n) => String(n).padStart(2, "0");
  const set = (node, text) => { if (node.textContent !== text) node.textContent = text; };
  const clock = (date) => `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  const tell = (from = document) => {
    for (const node of all("time[data-clock]", from)) set(node, clock(new Date(node.dateTime)));
    for (const node of all("time[data-ago]", from)) set(node, age(now() - new Date(node.dateTime)));
    for (const node of all("[data-tick=time]", from)) {
      const shown = node.textContent.length;
      set(node, clock(new Date(node.dataset.at)).slice(0, shown));
    }
  };

  // Swaps parts, and keeps focus, typed text, scrolling and what is open.
  const keyOf = (node) => {
    if (node.id) return `#${CSS.escape(node.id)}`;
    const form = node.closest("[data-key]");
    const own = node.name ? `[name="${CSS.escape(node.name)}"]` : node.getAttribute("href") ? `[href="${CSS.escape(node.getAttribute("href"))}"]`
      : node.dataset.step ? `[data-step="${node.dataset.step}"]` : node.dataset.scroll ? `[data-scroll="${CSS.escape(node.dataset.scroll)}"]` : node.tagName.toLowerCase();
    return form && form !== node ? `[data-key="${CSS.escape(form.dataset.key)}"] ${own}` : own;
  };
  const keep = (id, html) => {
    const part = document.getElementById(id);
    if (!part) return [];
    const focus = part.contains(document.activeElement) && document.activeElement;
    const slider = focus && focus.matches("[data-slider]") && focus;
    const focused = focus && (focus.dataset.step ? `[data-step="${focus.dataset.step}"]` : slider ? "[data-slider]" : keyOf(focus));
    const range = focus && focus.matches("input:not([type]),input[type=text]") ? [focus.selectionStart, focus.selectionEnd] : null;
    const typed = all("input:not([type=hidden]):not([type=range]),select", part).filter((field) =>
      field.tagName === "SELECT" ? field.selectedOptions[0] && !field.selectedOptions[0].defaultSelected : field.value !== field.defaultValue).map((field) => [keyOf(field), field.value]);
    const open = new Map(all("details[data-key]", part).map((node) => [node.dataset.key, node.open]));
    const scrolled = all("[data-scroll]", part).map((node) => [node.dataset.scroll, node.scrollLeft, node.scrollTop]).filter(([, left, top]) => left || top);
    return [{ part, html, focused, range, typed, open, scrolled }];
  };
  const put = ({ part, html, open, typed, focused }) => {
    part.innerHTML = html;
    for (const node of all("details[data-key]", part)) {
      // The bar of time opens on the way into the past, and folds on the way back unless it is in use.
      const turns = node.dataset.key === "time" && turned && !(focused && node.open === false);
      if (open.has(node.dataset.key) && !turns) node.open = open.get(node.dataset.key);
    }
    for (const [key, value] of typed) { const field = $(key, part); if (field) field.value = value; }
    begin(part);
  };
  const restore = ({ part, focused, range, scrolled }) => {
    for (const [key, left, top] of scrolled) {
      const node = $(`[data-scroll="${CSS.escape(key)}"]`, part);
      if (node) { node.scrollLeft = left; node.scrollTop = top; }
    }
    if (focused) {
      const field = $(focused, part);
      if (field) { field.focus({ preventScroll: true }); if (range) try { field.setSelectionRange(...range); } catch { /* not a text */ } }
    }
  };
  // First all reads, then all writes: a read after a write makes the browser lay out the page again.
  const swapParts = (parts) => {
    const kept = parts.flatMap(([id, html]) => keep(id, html));
    kept.forEach(put);
    kept.forEach(restore);
    count();
  };
  const show = (page) => {
    if (pressed || composing) { waiting = waiting ? { ...page, parts: { ...waiting.parts, ...page.parts } } : page; return; }
    main.dataset.at = page.at;
    main.dataset.now = page.now;
    skew = page.now / 1000 - Date.now();
    if (page.live !== undefined) {
      turned = String(page.live) !== main.dataset.live;
      main.dataset.live = page.live;
      document.body.classList.toggle("past", !page.live);
    }
    document.title = page.title;
    const parts = Object.entries(page.parts).filter(([id]) => id !== "time" || !dragging);
    swapParts([...parts, ...(page.gone || []).map((id) => [id, ""])]);
    turned = false;
    if (dragging && page.parts.time) {
      const parsed = document.createElement("template");
      parsed.innerHTML = page.parts.time;
      for (const [n, line] of all(".line").entries()) line.replaceWith(all(".line", parsed.content)[n]);
      tell($("#time"));
    }
    requestAnimationFrame(() => performance.mark("crewlog:painted", { detail: { at: page.at } }));
  };
  const release = () => { pressed = composing = false; const page = waiting; waiting = undefined; if (page) show(page); };

  // Live: the server sends the parts that changed.
  const lost = () => {
    const line = $("#lost");
    line.hidden = !lostAt;
    document.body.classList.toggle("lost", !!lostAt);
    if (lostAt) line.textContent = `Connection lost ${age(Date.now() - lostAt)}. The page shows what it has, and tries again.`;
  };
  let retry;
  const follow = () => {
    stop();
    if (main.dataset.live !== "true") return;
    // A browser has six connections to a server for all its tabs, and each stream takes one.
    if (document.hidden) { retry = setTimeout(async () => { if (!await go(at())) follow(); }, 10000); return; }
    const query = new URLSearchParams(location.search);
    query.set("seen", main.dataset.at);
    source = new EventSource(`/live${path === "/" ? "" : path}?${query}`);
    source.onopen = () => { lostAt = undefined; lost(); };
    source.onmessage = (message) => { lostAt = undefined; lost(); show(JSON.parse(message.data)); };
    source.onerror = () => {
      lostAt ??= Date.now();
      lost();
      if (source && source.readyState === EventSource.CLOSED) {
        clearTimeout(retry);
        retry = setTimeout(follow, 2000);
        fetch(at(undefined, { part: 1 })).then((answer) => {
          if (answer.status === 401) $("#lost").textContent = "The server was started again: open the address that it has printed.";
        }, () => {});
      }
    };
  };
  const stop = () => { clearTimeout(retry); if (source) source.close(); source = undefined; };

  // Notices: only after a press of the button, which also asks the browser. A page that is not secure has none.
  let waited;
  const remembered = () => { try { return localStorage.getItem("crewlog-notify"); } catch { return null; } };
  const notifies = () => "Notification" in window && Notification.permission === "granted" && remembered() === "on";
  const toggleNotices = async () => {
    const isOn = !notifies() && await Notification.requestPermission() === "granted";
    try { localStorage.setItem("crewlog-notify", isOn ? "on" : "off"); } catch { /* not kept */ }
    begin(document);
  };
  const count = () => {
    if (main.dataset.live !== "true") return;
    const node = $("[data-waiting]"), n = node ? +node.dataset.waiting : 0, grew = waited !== undefined && n > waited;
    waited = n;
    // Several tabs replace each other's notice.
    if (grew && notifies()) new Notification("crewlog", { body: n === 1 ? "1 item waits for you" : `${n} items wait for you`, tag: "crewlog" }).onclick = () => window.focus();
  };

  // Another moment, or another thing to look at.
  let asking, dragging = false;
  const go = async (url, how) => {
    if (asking) asking.abort();
    const mine = (asking = new AbortController());
    const parts = new URL(url, location);
    parts.searchParams.set("part", "1");
    performance.mark("crewlog:step", { detail: { url } });
    try {
      const answer = await fetch(parts, { signal: mine.signal });
      // What it is not is said by a page of its own.
      if (answer.status === 404) { location.assign(url); return false; }
      if (!answer.ok) throw new Error(answer.status);
      const page = await answer.json();
      if (mine !== asking) return false;
      // The server may have led elsewhere.
      const shown = new URL(answer.url);
      shown.searchParams.delete("part");
      url = shown.pathname + shown.search;
      if (how === "push") history.pushState(null, "", url); else if (how === "replace") history.replaceState(null, "", url);
      if (page.live) lostAt = undefined; else stop();
      page.gone = all(".part").map((part) => part.id).filter((id) => !(id in page.parts));
      show(page);
      if (page.live) follow();
      return true;
    } catch (error) {
      if (error.name !== "AbortError") { lostAt ??= Date.now(); lost(); }
      return false;
    }
  };
  const at = (position, more = {}) => {
    const url = new URL(location);
    url.searchParams.delete("said");
    for (const [name, value] of Object.entries(more)) url.searchParams.set(name, value);
    if (position === undefined) url.searchParams.delete("at"); else url.searchParams.set("at", position);
    return url.pathname + url.search;
  };
  const knob = (slider) => {
    const part = slider.value / Math.max(1, slider.max), head = $(".hist .head");
    head.setAttribute("x", `${part * 100}%`);
    $("g", head).setAttribute("transform", `translate(${-34 - (part - 0.5) * 40} 72)`);
    $("text", head).textContent = grouped(slider.value);
    slider.setAttribute("aria-valuetext", `position ${grouped(slider.value)}`);
  };
  const pause = () => { clearTimeout(playing); playing = undefined; for (const button of all("[data-play]")) button.textContent = "▸ play"; };
  const play = async () => {
    const slider = $("[data-slider]");
    if (!slider) return;
    const head = +slider.max, from = main.dataset.live === "true" ? 0 : +slider.value;
    const to = Math.min(head, from + Math.max(1, Math.ceil(head / 240)));
    if (to >= head) { pause(); await go(at(), "push"); return; }
    playing = setTimeout(() => {}, 0);
    const mine = playing;
    await go(at(to), "replace");
    if (playing !== mine) return;
    for (const button of all("[data-play]")) button.textContent = "▮▮ stop";
    playing = setTimeout(play, 160);
  };
  const toggle = () => { if (playing !== undefined) pause(); else play(); };
  const step = (name) => { const link = $(`[data-step="${name}"]`); if (link) { pause(); go(link.getAttribute("href"), "push"); } };

  // What each part needs once it is there.
  const begin = (from) => {
    for (const node of all("[data-play],[data-theme-button],[data-help-button]", from)) node.hidden = false;
    for (const node of all("[data-notify-button]", from)) {
      node.hidden = !isSecureContext || !("Notification" in window) || Notification.permission === "denied";
      node.ariaPressed = notifies();
    }
    if (playing !== undefined) for (const button of all("[data-play]", from)) button.textContent = "▮▮ stop";
    tell(from);
  };
  // The panel opens with its head in view and the focus on it; when it closes, the focus returns to where it was opened.
  let opener;
  const showPanel = (href) => {
    const title = $("#inspector-title");
    if (!title) return;
    opener = href;
    title.focus({ preventScroll: true });
    const { top, bottom } = title.getBoundingClientRect();
    const covered = getComputedStyle($("#top")).position === "sticky" ? $("#top").offsetHeight : 0;
    if (top < covered || bottom > innerHeight) $("#inspector").scrollIntoView({ block: "start" });
  };
  const onClick = (event) => {
    const button = event.target.closest("[data-play],[data-notify-button],[data-theme-button],[data-help-button]");
    if (button) {
      if ("play" in button.dataset) toggle();
      else if ("notifyButton" in button.dataset) toggleNotices();
      else if ("helpButton" in button.dataset) $("#help").showModal();
      else {
        const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme:dark)").matches;
        root.dataset.theme = isDark ? "light" : "dark";
        try { localStorage.setItem("crewlog-theme", root.dataset.theme); } catch { /* not kept */ }
      }
      return;
    }
    for (const menu of all("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
    const link = event.target.closest("a[href]");
    if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const href = link.getAttribute("href");
    if (!href.startsWith("/") || document.body.classList.contains("still")) return;
    const to = new URL(href, location);
    if (to.pathname !== path || to.hash) return;
    event.preventDefault();
    pause();
    go(href, "push").then((is) => {
      if (!is) return;
      if ("close" in link.dataset) { const from = opener && $(`a[href="${CSS.escape(opener)}"]`); if (from) from.focus(); }
      else if (to.searchParams.has("task") || to.searchParams.has("event")) showPanel(href);
    });
  };
  const onKey = (event) => {
    if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey) return;
    if (event.key === "Escape") { for (const menu of all("details.menu[open]")) menu.open = false; return; }
    const on = document.activeElement;
    if (on && on !== document.body && on.matches("input,select,textarea,button,summary,dialog *") && !(event.key === "l" && on.matches("button,summary"))) return;
    if (on && on.matches("[data-scroll]") && event.key.startsWith("Arrow")) return;
    if (document.body.classList.contains("still")) return;
    const keys = { ArrowLeft: () => step("back"), ArrowRight: () => step("on"), " ": toggle, l: () => { pause(); go(at(), "push"); }, L: () => { pause(); go(at(), "push"); }, "?": () => $("#help").showModal() };
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  };

  addEventListener("DOMContentLoaded", () => {
    main = $("#main");
    skew = main.dataset.now / 1000 - Date.now();
    begin(document);
    count();
    for (const node of all(".graph .n-run,.graph .n-wait,.graph .n-fail").slice(0, 1)) {
      const box = node.closest(".scroll");
      box.scrollLeft = node.getBoundingClientRect().left - box.getBoundingClientRect().left - box.clientWidth / 2;
    }
    for (const node of all("[data-scroll=timeline]")) node.scrollLeft = node.scrollWidth;
    document.addEventListener("click", onClick);
    document.addEventListener("keydown", onKey);
    document.addEventListener("input", (event) => {
      const slider = event.target.closest("[data-slider]");
      if (!slider) return;
      pause();
      dragging = true;
      knob(slider);
      go(at(slider.value), "replace");
    });
    document.addEventListener("change", (event) => {
      const slider = event.target.closest("[data-slider]");
      if (!slider) return;
      dragging = false;
      go(at(+slider.value >= +slider.max ? undefined : slider.value), "push");
    });
    document.addEventListener("pointerdown", (event) => { pressed = !event.target.closest("[data-slider]"); });
    for (const name of ["pointerup", "pointercancel"]) document.addEventListener(name, () => setTimeout(release, 0));
    document.addEventListener("compositionstart", () => { composing = true; });
    document.addEventListener("compositionend", release);
    addEventListener("popstate", () => { if (location.pathname === path) go(location.href); else location.reload(); });
    document.addEventListener("visibilitychange", follow);
    // A page that is kept for going back would keep its stream too.
    addEventListener("pagehide", stop);
    addEventListener("pageshow", (event) => { if (event.persisted) follow(); });
    setInterval(() => { tell(); lost(); }, 1000);
    follow();
  });
})();
