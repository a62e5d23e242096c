// Drives a real browser through the desk.
// usage: node browser.mjs FOLDER-OF-MODULES LOG-OF-QUICKSTART FOLDER-FOR-SCREENSHOTS
import assert from "node:assert/strict";
import fs from "node:fs";
import { createRequire } from "node:module";

const [modules, logFile, shots] = process.argv.slice(2);
const puppeteer = createRequire(modules + "/")("puppeteer-core");
const log = fs.readFileSync(logFile, "utf8");
const base = log.match(/The desk: (\S+)/)[1];
const password = (name) => log.match(new RegExp(`^ +${name} +password (\\S+)`, "m"))[1];

const browser = await puppeteer.launch({
  executablePath: "/usr/bin/chromium",
  headless: true,
  protocolTimeout: 60000,
  // Tests run as root in a container too, where Chromium's sandbox cannot be made.
  args: process.getuid() === 0 ? ["--no-sandbox"] : [],
});
process.on("exit", () => browser.process()?.kill());

const problems = [];
const open = async (person) => {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  page.setDefaultTimeout(30000);
  await page.setViewport({ width: 1280, height: 900 });
  page.on("pageerror", (error) => problems.push(`${person}: ${error.message}`));
  page.on("dialog", (dialog) => problems.push(`${person}: a dialog ${dialog.message()}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(base)) problems.push(`${person} fetched ${request.url()}`);
    if (/COMPLAINT|C-ANNA|C-EVE/.test(request.url())) problems.push(`a name in ${request.url()}`);
  });
  return page;
};
const click = async (page, selector) => {
  await page.bringToFront();
  try {
    await Promise.all([page.waitForNavigation(), page.click(selector)]);
  } catch (error) {
    // The page was read again by its script at this very moment: people click again, too.
    if (!error.message.includes("detached")) throw error;
    await click(page, selector);
  }
};
const text = (page) => page.$eval("main", (main) => main.innerText.replaceAll("\u00a0", " "));
const says = async (page, words) => {
  const said = await text(page);
  assert.ok(said.includes(words), `no "${words}" in:\n${said}`);
};
const login = async (page, name, word) => {
  await page.goto(base + "login");
  await page.type("#user", name);
  await page.type("#password", word);
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
};

// The contrast of every text with what is behind it (WCAG 2, AA).
const poorTexts = () => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const paint = canvas.getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    paint.clearRect(0, 0, 1, 1);
    paint.fillStyle = colour;
    paint.fillRect(0, 0, 1, 1);
    return [...paint.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => {
    const part = (v) => ((v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const behind = (element) => {
    for (; element; element = element.parentElement) {
      const colour = rgba(getComputedStyle(element).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const poor = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.nodeValue.trim());
    const style = getComputedStyle(element);
    if (!own || element.closest("svg") || !element.checkVisibility()) continue;
    const [one, other] = [light(rgba(style.color)), light(behind(element))];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (ratio < 4.5) poor.push(`${ratio.toFixed(2)} ${element.outerHTML.slice(0, 120)}`);
  }
  return poor;
};

// Light and dark, wide and narrow; nothing may stand out at the side, or be hard to read.
const shoot = async (page, name) => {
  await page.bringToFront();
  for (const scheme of ["light", "dark"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    for (const width of [1280, 390]) {
      await page.setViewport({ width, height: 900 });
      const out = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (out > 0) problems.push(`${name}: ${out} pixels too wide at ${width}`);
      await page.screenshot({ path: `${shots}/${name}-${scheme}-${width}.png`, fullPage: true });
    }
    for (const poor of await page.evaluate(poorTexts)) problems.push(`${name} ${scheme}: ${poor}`);
  }
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }]);
  await page.setViewport({ width: 1280, height: 900 });
};

// ---------------------------------------------------------------- Ann finds it
const ann = await open("ann");
await login(ann, "ann", "not her password");
await says(ann, "Name and password do not fit");
await shoot(ann, "login");
await login(ann, "ann", password("ann"));
await says(ann, "Waits for a person");
await says(ann, "1,250.00 EUR");
await shoot(ann, "now");

// By keyboard: "/" leads to the search.
await Promise.all([ann.waitForNavigation(), ann.keyboard.press("/")]);
await ann.keyboard.press("/");
await ann.keyboard.type("COMPLAINT-1");
await Promise.all([ann.waitForNavigation(), ann.keyboard.press("Enter")]);
assert.equal((await ann.$$("table.rows tbody tr")).length, 1);
// Or from Now, as the README says.
await ann.goto(base);
await click(ann, "a.serial");
await says(ann, "after 3 compensating attempts, because: attempts used up");
await shoot(ann, "trade");
const trade = ann.url();
await click(ann, ".acts a");
await says(ann, "tradelock resolve propose COMPLAINT-1 C-ANNA WITHDRAW --as failed --fence");
await shoot(ann, "decide");

// The same page once more, which will be old by the time that it is sent.
const old = await (await ann.browserContext()).newPage();
await old.goto(ann.url());

await ann.bringToFront();
await ann.type("#reason-proposefailed", "the bank says by phone: never arrived");
await click(ann, "form:has(#reason-proposefailed) button");
await says(ann, "Proposed: failed. Another operator has to confirm it");
await click(ann, ".acts a");
await says(ann, "You proposed “failed”");
assert.equal((await ann.$$("#reason-confirmfailed")).length, 0);

// Her own confirmation, by a form that the page does not have, and one of another page's making.
await ann.$eval("form:has(#reason-evidence)", (form) => {
  form.elements.act.value = "confirm";
  form.insertAdjacentHTML("beforeend", "<input type=hidden name=as value=failed>");
  form.elements.source.value = form.elements.reason.value = "myself";
});
await click(ann, "form:has(#reason-evidence) button");
await says(ann, "whoever proposed a decision cannot confirm");
await ann.$eval("form:has(#reason-evidence)", (form) => {
  form.elements.token.value = "A".repeat(22);
  form.elements.source.value = "somebody else";
});
await click(ann, "form:has(#reason-evidence) button");
await says(ann, "This form was not sent by a page of yours. Nothing was done.");

// ------------------------------------------------------------------ Bob confirms
const bob = await open("bob");
await login(bob, "bob", password("bob"));
await says(bob, "ann@localhost proposed “failed”: it waits for a second operator");
await click(bob, "a.serial");
await says(bob, "It waits for a second operator.");
await click(bob, ".acts a");
await says(bob, "ann@localhost proposed it, because: the bank says by phone: never arrived");
await shoot(bob, "confirm");
await bob.type("#reason-confirmfailed", "seen on the statement too");
await click(bob, "form:has(#reason-confirmfailed) button");
await says(bob, "Decided: failed. A worker carries it out");

// The page is read again by its script until the worker has done it.
await bob.waitForFunction(
  () => document.querySelector(".why .state").innerText === "failed", { timeout: 60000 });
await says(bob, "It failed, with proof: ");
await shoot(bob, "resolved");

// ------------------------------------------------- any past moment, by the slider
await bob.bringToFront();
const moved = (page, words) => page.waitForFunction(
  (wanted) => document.querySelector("main").innerText.includes(wanted), {}, words);
await bob.focus("#moment");
await bob.keyboard.press("Home");
await moved(bob, "As it was at");
await says(bob, "live");
assert.match(bob.url(), /\/trade\?r=[\w-]+&at=\d+$/);
assert.equal((await bob.$$("table.rows tbody tr")).length, 1);
const past = bob.url();
await bob.keyboard.press("ArrowRight");
await bob.waitForFunction((url) => location.href !== url, {}, past);
assert.equal(await bob.evaluate(() => document.activeElement.id), "moment");
await shoot(bob, "past");
await bob.focus("#moment");
await bob.keyboard.press("End");
await bob.waitForFunction(() => !document.body.innerText.includes("As it was at"));
await says(bob, "It failed, with proof: ");
// A colleague is sent the link.
const colleague = await (await ann.browserContext()).newPage();
await colleague.goto(past);
await says(colleague, "As it was at");
await colleague.close();

await old.bringToFront();
await old.type("#reason-proposefailed", "late");
await click(old, "form:has(#reason-proposefailed) button");
await says(old, "Nothing was done. The trade has moved on since the page was made");
await says(old, "It failed, with proof");
await shoot(old, "stale");

// ------------------------------------------------------------------------ lists
await ann.bringToFront();
await ann.goto(base + "trades");
await shoot(ann, "trades");
const first = await ann.$$eval("a.serial", (all) => all.map((one) => one.innerText));
await click(ann, "a[rel=next]");
const second = await ann.$$eval("a.serial", (all) => all.map((one) => one.innerText));
assert.equal(first.length, 50);
assert.ok(second.length > 0 && second.every((one) => !first.includes(one)));
await says(ann, "Page 2");
await click(ann, "a[rel=prev]");
assert.deepEqual(await ann.$$eval("a.serial", (all) => all.map((one) => one.innerText)), first);
await click(ann, ".tabs a:last-child");
await says(ann, "succeeded");

// ------------------------------------------------------- what there is not
await ann.goto(base + "trade?r=" + "A".repeat(22));
await says(ann, "No such trade");
await ann.goto(base + "trades");
await ann.type("#f-serial", "NOT-THERE");
await click(ann, ".search button");
await says(ann, "No trade is like that.");

// ------------------------------------------- a script in a serial number is text
await ann.goto(base + "trades");
await ann.type("#f-cust", "C-EVE");
await click(ann, ".search button");
await says(ann, "<script>owned=1</script>");
await says(ann, "<img/src=x/onerror=owned=1>");
for (const link of await ann.$$eval("a.serial", (all) => all.map((one) => one.href))) {
  await ann.goto(link);
  await says(ann, "owned=1");
  assert.equal(await ann.evaluate(() => typeof window.owned), "undefined");
}
await shoot(ann, "script");
// And if it were markup, the policy would not let it run.
await ann.evaluate(() => {
  document.body.insertAdjacentHTML("beforeend", "<img src='/icon.svg' onload='window.owned = 1'>");
  const script = document.createElement("script");
  script.textContent = "window.owned = 1";
  document.body.append(script);
});
await new Promise((done) => setTimeout(done, 300));
assert.equal(await ann.evaluate(() => typeof window.owned), "undefined");

// ------------------------------------------------------------------------ audit
await ann.goto(base + "audit");
await click(ann, "main form button");
await ann.waitForFunction(() => document.querySelector(".verdict"), { timeout: 60000 });
await says(ann, "The books are in order.");
await shoot(ann, "audit");

// ----------------------------------------------------- without script, and no more
const plain = await open("plain");
await plain.setJavaScriptEnabled(false);
await login(plain, "bob", password("bob"));
await plain.goto(trade);
await says(plain, "Decisions of operators");
await plain.focus("#moment");
await plain.keyboard.press("Home");
await click(plain, ".slide button");
await says(plain, "As it was at");
assert.match(plain.url(), /&at=\d+$/);
await plain.type("#at", "2001-01-01");
await click(plain, ".when button");
await says(plain, "Not there yet");
await plain.goto(trade);
await click(plain, "header form button");
await plain.goto(trade);
assert.ok(plain.url().endsWith("/login"), plain.url());

// ------------------------------------------------------------- an expired session
await bob.bringToFront();
await bob.goto(base + "audit");
await bob.deleteCookie(...await bob.cookies());
await click(bob, "main form button");
await says(bob, "You are not logged in any more. Nothing was done; log in and look again.");

assert.deepEqual(problems, []);
await browser.close();
console.log("as expected");
