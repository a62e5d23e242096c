// The only script of the desk: pages that say so are read again, lists and forms work without it.
"use strict";

(() => {
  let busy = false;

  const wait = () => {
    const main = document.getElementById("main");
    const seconds = Number(main && main.dataset.refresh);
    if (seconds > 0) setTimeout(refresh, seconds * 1000);
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
    addCopies();
    if (path) {
      const links = [...fresh.querySelectorAll("a")];
      links.find((one) => one.getAttribute("href") === path)?.focus({ preventScroll: true });
    }
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
    const field = document.getElementById("f-serial");
    if (field) field.focus();
    else if (document.querySelector("header.bar")) location.href = "/trades";
  });

  // One click is one form.
  document.addEventListener("submit", (event) => {
    const button = event.target.querySelector("button:not([type=button])");
    if (button) setTimeout(() => { button.disabled = true; }, 0);
  });

  addCopies();
  wait();
})();
