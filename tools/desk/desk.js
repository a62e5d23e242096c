// The only script of the desk: pages that say so are read again, and a slider shows what it moves
// to.  Lists and forms work without it.
"use strict";

(() => {
  let busy = false, timer = 0, moves = 0, pause = 0;

  const wait = () => {
    clearTimeout(timer);
    const main = document.getElementById("main");
    const seconds = Number(main && main.dataset.refresh);
    if (seconds > 0) timer = setTimeout(refresh, seconds * 1000);
  };

  // Not while somebody reads a marked text or writes into a field.
  const isInUse = (main) =>
    document.hidden || busy || !window.getSelection().isCollapsed ||
    (main.contains(document.activeElement) && document.activeElement.matches("input, select"));

  const refresh = async () => {
    const main = document.getElementById("main");
    if (!isInUse(main)) {
      busy = true;
      try {
        const answer = await fetch(location.href, {
          headers: { "X-Desk-Refresh": "1" }, cache: "no-store", credentials: "same-origin",
        });
        if (answer.status === 403) {
          location.reload();
          return;
        }
        if (answer.ok) replace(main, await answer.text());
        document.body.classList.toggle("stale", !answer.ok);
      } catch {
        document.body.classList.add("stale");
      }
      busy = false;
    }
    wait();
  };

  const replace = (main, text) => {
    const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("main");
    if (!fresh) return;
    const open = [...main.querySelectorAll("details")].map((one) => one.open);
    const active = document.activeElement;
    const path = main.contains(active) && active.getAttribute("href");
    fresh.querySelectorAll("details").forEach((one, i) => { one.open = open[i] === true; });
    main.replaceWith(document.adoptNode(fresh));
    prepare();
    if (path) {
      const links = [...fresh.querySelectorAll("a")];
      links.find((one) => one.getAttribute("href") === path)?.focus({ preventScroll: true });
    }
  };

  // The slider stays, or whoever moves it would lose it; all around it becomes what was then.
  const show = async (slider) => {
    const mine = ++moves;
    try {
      const answer = await fetch(`/trade?${new URLSearchParams(new FormData(slider.form))}`, {
        cache: "no-store", credentials: "same-origin",
      });
      const text = await answer.text();
      if (mine !== moves) return;
      const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("main");
      const there = fresh && fresh.querySelector("#moment");
      if (!there) {
        location.href = answer.url;
        return;
      }
      const parts = [...fresh.querySelectorAll("[data-part]")];
      document.querySelectorAll("[data-part]").forEach((old, i) => {
        const open = [...old.querySelectorAll("details")].map((one) => one.open);
        parts[i].querySelectorAll("details").forEach((one, k) => { one.open = open[k] === true; });
        old.replaceWith(document.adoptNode(parts[i]));
      });
      const label = (root) => root.querySelector("label[for=moment]");
      label(document).textContent = label(fresh).textContent;
      slider.setAttribute("aria-valuetext", there.getAttribute("aria-valuetext"));
      document.getElementById("main").dataset.refresh = fresh.dataset.refresh || "";
      history.replaceState(null, "", answer.url);
      prepare();
    } catch {
      document.body.classList.add("stale");
    }
    wait();
  };

  document.addEventListener("input", (event) => {
    if (event.target.id !== "moment") return;
    clearTimeout(pause);
    pause = setTimeout(show, 60, event.target);
  });

  // Moments are UTC; beside it stands the viewer's own time, where that is another.
  const addLocal = () => {
    document.querySelectorAll("time[datetime]:not([data-local])").forEach((one) => {
      const at = new Date(one.dateTime);
      if (at.getTimezoneOffset() === 0) return;
      const format = { hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" };
      one.dataset.local = at.toLocaleTimeString("en-GB", format);
      one.title = `${one.dateTime} (${one.dataset.local})`;
      if (one.textContent === one.dateTime) one.after(` (${one.dataset.local})`);
    });
  };

  const prepare = () => {
    document.querySelectorAll(".slide button").forEach((one) => { one.hidden = true; });
    addLocal();
    addCopies();
  };

  const addCopies = () => {
    document.querySelectorAll("p.command").forEach((line) => {
      if (!navigator.clipboard || line.querySelector("button")) return;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "plain copy";
      button.textContent = "Copy";
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(line.querySelector("code").textContent);
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      });
      line.append(button);
    });
  };

  // "/" leads to the search, from everywhere.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("input, select, textarea")) return;
    event.preventDefault();
    const field = document.getElementById("find");
    if (field) field.select();
  });

  // One click is one form.
  document.addEventListener("submit", (event) => {
    const button = event.target.querySelector("button:not([type=button])");
    if (button) setTimeout(() => { button.disabled = true; }, 0);
  });

  prepare();
  wait();
})();
