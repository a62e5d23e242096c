"""Drives a real browser through the desk, by Debian's chromedriver and python3-selenium.

usage: browser.py LOG-OF-QUICKSTART STATEMENT FOLDER-FOR-SCREENSHOTS
"""
import base64
import csv
import json
import os
import re
import sys
import time
from contextlib import ExitStack, contextmanager

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

log_file, statement, shots = sys.argv[1:]
with open(log_file, encoding="utf8") as file:
    log = file.read()
base = re.search(r"The desk: (\S+)", log)[1]
problems = []

# The contrast of every text with what is behind it (WCAG 2, AA).
POOR_TEXTS = """
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
"""


class Person:
    """Somebody at a browser of his own."""

    def __init__(self, name, script=True):
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        options.add_argument("--headless=new")
        options.add_argument("--window-size=1280,900")
        options.add_argument("--disable-dev-shm-usage")
        if os.geteuid() == 0:  # in a container too, where Chromium's sandbox cannot be made
            options.add_argument("--no-sandbox")
        if not script:
            options.add_experimental_option(
                "prefs", {"profile.managed_default_content_settings.javascript": 2})
        options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
        self.name = name
        self.browser = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
        self.resize(1280)
        self.browser.get_log("performance")  # what it did by itself at its start

    def close(self):
        """Looks back at all that the browser did, and ends it."""
        try:
            self.look_back()
        finally:
            self.browser.quit()

    def look_back(self):
        for entry in self.browser.get_log("performance"):
            event = json.loads(entry["message"])["message"]
            url = event["params"].get("request", {}).get("url")
            if event["method"] == "Page.javascriptDialogOpening":
                problems.append(f"{self.name}: a dialog {event['params']['message']}")
            # The browser's own icon in a field for a date is data; a page may show none.
            if event["method"] == "Network.requestWillBeSent" and not url.startswith((base, "data:")):
                problems.append(f"{self.name} fetched {url}")
            if re.search("COMPLAINT|C-ANNA|C-EVE", url or ""):
                problems.append(f"a name in {url}")
        problems.extend(f"{self.name}: {entry['message']}"
                        for entry in self.browser.get_log("browser")
                        if entry["source"] == "javascript")

    def resize(self, width):
        self.browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})

    def until(self, condition):
        """Elements that the page's script replaces meanwhile are looked up again."""
        return WebDriverWait(self.browser, 240, 0.1,
                             [StaleElementReferenceException]).until(lambda _: condition())

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    @contextmanager
    def navigation(self):
        """What is done inside leads to another page, which is there at the end."""
        before = self.one("html").id
        yield
        self.until(lambda: self.one("html").id != before)

    def act(self, selector, action):
        """The page may be read again by its script at this very moment: people do it again, too."""
        def tried():
            action(self.one(selector))
            return True
        self.until(tried)

    def click(self, selector):
        with self.navigation():
            self.act(selector, lambda element: element.click())

    def type(self, selector, *keys):
        self.act(selector, lambda element: element.send_keys(*keys))

    def press(self, *keys):
        self.browser.switch_to.active_element.send_keys(*keys)

    def go(self, url):
        self.browser.get(url)

    def run(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def text(self):
        return self.one("main").get_property("innerText").replace("\u00a0", " ")

    def says(self, words):
        said = self.text()
        assert words in said, f"{self.name}: no '{words}' in:\n{said}"

    def await_text(self, words):
        self.until(lambda: words in self.text())

    def login(self, name, word):
        self.go(base + "login")
        self.type("#user", name)
        with self.navigation():
            self.type("#password", word, Keys.ENTER)

    def shoot(self, name):
        """Light and dark, wide and narrow; nothing may stand out at the side, or be hard to read."""
        command = self.browser.execute_cdp_cmd
        for scheme in ("light", "dark"):
            command("Emulation.setEmulatedMedia",
                    {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
            for width in (1280, 390):
                self.resize(width)
                out, height = self.run("const all = document.documentElement;"
                                       "return [all.scrollWidth - innerWidth, all.scrollHeight]")
                if out > 0:
                    problems.append(f"{name}: {out} pixels too wide at {width}")
                if height > 7000 and name != "runbook":
                    problems.append(f"{name}: {height} pixels long at {width}")
                picture = command("Page.captureScreenshot", {
                    "captureBeyondViewport": True,
                    "clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}})
                with open(f"{shots}/{name}-{scheme}-{width}.png", "wb") as image:
                    image.write(base64.b64decode(picture["data"]))
            problems.extend(f"{name} {scheme}: {poor}" for poor in self.run(POOR_TEXTS))
        command("Emulation.setEmulatedMedia",
                {"features": [{"name": "prefers-color-scheme", "value": "light"}]})
        self.resize(1280)


def password(name):
    return re.search(rf"^ +{name} +password (\S+)", log, re.M)[1]


def finds_it(ann):
    ann.login("ann", "not her password")
    ann.says("Name and password do not fit")
    ann.shoot("login")
    ann.login("ann", password("ann"))
    ann.says("Needs a person")
    ann.says("1,250.00 EUR")
    ann.shoot("now")
    ann.go(base + "wall")
    assert not ann.all("button, form, script, a.button")
    ann.shoot("wall")
    for name in ("channels", "reports"):
        ann.go(base + name)
        ann.shoot(name)
    ann.go(base + "trades?show=parked")
    ann.says(", the oldest first.")
    ann.shoot("parked")
    ann.click("a[href*='act=propose']")
    ann.says("Propose failed: ")
    ann.shoot("many")
    ann.go(base + "runbook#parked")
    ann.shoot("runbook")
    ann.go(base)

    # By keyboard: "/" leads to the search.
    ann.press("/")
    with ann.navigation():
        ann.press(" COMPLAINT-1 ", Keys.ENTER)
    assert len(ann.all("table.rows tbody tr")) == 1
    # Or from Now, as the README says.
    ann.go(base)
    ann.click("a.serial")
    ann.says("after 3 compensating attempts, because: attempts used up")
    ann.says("Attempt 1, ")
    ann.says("looked at by a worker, asked: not found")
    ann.browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Kolkata"})
    ann.browser.refresh()
    ann.says("GMT+5:30)")
    ann.browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "UTC"})
    ann.browser.refresh()
    ann.shoot("trade")
    trade = ann.browser.current_url
    ann.click(".acts a")
    ann.says("tradelock resolve propose COMPLAINT-1 C-ANNA WITHDRAW --as failed --fence")
    assert ann.one("#outcome").get_property("value") == ""
    ann.shoot("decide")
    return trade


def proposes(ann):
    """Beside it is the same page once more, which will be old by the time that it is sent."""
    tab, url = ann.browser.current_window_handle, ann.browser.current_url
    ann.browser.switch_to.new_window("tab")
    ann.go(url)
    old = ann.browser.current_window_handle
    ann.browser.switch_to.window(tab)

    ann.type("#reason-proposefailed", "the bank says by phone: never arrived")
    ann.click("form:has(#reason-proposefailed) button")
    ann.says("Proposed: failed. Another operator has to confirm it")
    ann.click(".acts a")
    ann.says("You proposed “failed”")
    assert not ann.all("#reason-confirmfailed")

    # Her own confirmation, by a form that the page does not have, and one of another page's making.
    form = "const form = document.querySelector('form:has(#reason-evidence)');"
    ann.run(form + """
        form.elements.act.value = "confirm";
        form.insertAdjacentHTML("beforeend", "<input type=hidden name=as value=failed>");
        form.elements.outcome.value = "UNKNOWN";
        form.elements.source.value = form.elements.reason.value = "myself";""")
    ann.click("form:has(#reason-evidence) button")
    ann.says("whoever proposed a decision cannot confirm")
    ann.run(form + """
        form.elements.token.value = "A".repeat(22);
        form.elements.outcome.value = "UNKNOWN";
        form.elements.source.value = "somebody else";""")
    ann.click("form:has(#reason-evidence) button")
    ann.says("This form was not sent by a page of yours. Nothing was done.")
    return old


def confirms(bob):
    bob.login("bob", password("bob"))
    bob.says("ann proposed · 1")
    bob.says("It waits for a second operator")
    bob.go(base + "inbox")
    bob.says("the bank says by phone: never arrived")
    bob.shoot("inbox")
    bob.go(base)
    bob.click("a.serial")
    bob.says("It waits for a second operator.")
    bob.click(".acts a")
    bob.says("Confirm: 1,250.00 EUR goes back to C-ANNA")
    bob.says("ann@localhost proposed it, because: the bank says by phone: never arrived")
    bob.shoot("confirm")
    bob.type("#reason-confirmfailed", "seen on the statement too")
    bob.click("form:has(#reason-confirmfailed) button")
    bob.says("Decided: failed. A worker carries it out")

    # The page is read again by its script until the worker has done it.
    bob.until(lambda: bob.one(".why .state").text == "failed")
    bob.says("It failed, with proof: ")
    bob.shoot("resolved")


def looks_at_the_past(bob, colleague):
    """Any past moment, by the slider; a colleague is sent the link."""
    bob.type("#moment", Keys.HOME)
    bob.await_text("As it was at")
    bob.says("live")
    past = bob.browser.current_url
    assert re.search(r"/trade\?r=[\w-]+&at=\d+$", past), past
    assert len(bob.all("table.rows tbody tr")) == 1
    bob.press(Keys.ARROW_RIGHT)
    bob.until(lambda: bob.browser.current_url != past)
    assert bob.run("return document.activeElement.id") == "moment"
    bob.shoot("past")
    bob.type("#moment", Keys.END)
    bob.until(lambda: "As it was at" not in bob.text())
    bob.says("It failed, with proof: ")

    tab = colleague.browser.current_window_handle
    colleague.browser.switch_to.new_window("tab")
    colleague.go(past)
    colleague.says("As it was at")
    colleague.browser.close()
    colleague.browser.switch_to.window(tab)


def sends_the_old_page(ann, old):
    tab = ann.browser.current_window_handle
    ann.browser.switch_to.window(old)
    ann.type("#reason-proposefailed", "late")
    ann.click("form:has(#reason-proposefailed) button")
    ann.says("Nothing was done. It was refused: the trade has moved on: ")
    ann.says("It failed, with proof")
    ann.says("You wrote: “late”")
    ann.shoot("stale")
    ann.browser.switch_to.window(tab)


def turns_pages(ann):
    def serials():
        return [link.text for link in ann.all("a.serial")]

    ann.go(base + "trades")
    ann.shoot("trades")
    first = serials()
    ann.click("a[rel=next]")
    second = serials()
    assert len(first) == 50
    assert second and not set(second) & set(first)
    ann.says("Page 2")
    ann.click("a[rel=prev]")
    assert serials() == first
    ann.click(".tabs a:last-child")
    ann.says("paid")

    # What there is not.
    ann.go(base + "trade?r=" + "A" * 22)
    ann.says("No such trade")
    ann.go(base + "trades")
    ann.type("#find", "NOT-THERE")
    ann.click(".find button")
    ann.says("No trade is like that.")


def meets_a_script(ann):
    """A script in a serial number is text."""
    owned = "return typeof window.owned"
    ann.go(base + "trades")
    ann.type("#find", "C-EVE")
    ann.click(".find button")
    ann.says("<script>owned=1</script>")
    ann.says("<img/src=x/onerror=owned=1>")
    for link in [link.get_property("href") for link in ann.all("a.serial")]:
        ann.go(link)
        ann.says("owned=1")
        assert ann.run(owned) == "undefined"
    ann.shoot("script")
    # And if it were markup, the policy would not let it run.
    ann.run("""
        document.body.insertAdjacentHTML("beforeend", "<img src='/icon.svg' onload='owned = 1'>");
        const script = document.createElement("script");
        script.textContent = "window.owned = 1";
        document.body.append(script);""")
    time.sleep(0.3)
    assert ann.run(owned) == "undefined"


def audits(ann):
    ann.go(base + "audit")
    ann.click("main form button")
    ann.until(lambda: ann.all(".verdict"))
    ann.says("The books are in order.")
    ann.shoot("audit")
    for name in ("acts", "doctor"):
        ann.go(base + name)
        ann.shoot(name)


def compares(ann):
    """A statement that lacks two payments, and has the one that was decided to have failed."""
    with open(statement, encoding="utf8") as file:
        rows = list(csv.DictReader(file))
    rows[-1].update(serial_no="COMPLAINT-1", cust_no="C-ANNA", amount_minor="125000",
                    channel_key="", channel_ref="X-1")
    with open(statement, "w", encoding="utf8", newline="") as file:
        to = csv.DictWriter(file, rows[0], lineterminator="\n")
        to.writeheader()
        to.writerows(rows[1:])
    ann.go(base + "audit")
    ann.one("#file").send_keys(statement)
    ann.click("form[action='/statement'] button")
    ann.until(lambda: ann.all("a[href='/file']"))
    ann.says("paid-failure")
    ann.shoot("compared")
    ann.click("a[href='/file']")
    ann.says("contradicts the trade: a conflict")
    ann.says("File 1 payment")
    ann.shoot("file")
    ann.go(base + "audit")
    ann.click("a[href^='/finding']")
    ann.shoot("finding")


def works_without_script(plain, trade):
    plain.login("bob", password("bob"))
    plain.go(trade)
    plain.says("Decisions of operators")
    plain.type("#moment", Keys.HOME)
    plain.click(".slide button")
    plain.says("As it was at")
    assert re.search(r"&at=\d+$", plain.browser.current_url), plain.browser.current_url
    plain.type("#at", "2001-01-01")
    plain.click(".when button")
    plain.says("Not there yet")
    plain.go(trade)
    plain.click("form[action='/logout'] button")
    plain.go(trade)
    assert plain.browser.current_url.endswith("/login"), plain.browser.current_url


def session_expires(bob):
    bob.go(base + "audit")
    bob.browser.delete_all_cookies()
    bob.click("main form button")
    bob.says("You are not logged in any more. Nothing was done; log in and look again.")


def main():
    with ExitStack() as people:
        def arrives(name, **how):
            person = Person(name, **how)
            people.callback(person.close)
            return person

        ann = arrives("ann")
        trade = finds_it(ann)
        old = proposes(ann)
        bob = arrives("bob")
        confirms(bob)
        looks_at_the_past(bob, ann)
        sends_the_old_page(ann, old)
        turns_pages(ann)
        meets_a_script(ann)
        audits(ann)
        compares(ann)
        works_without_script(arrives("plain", script=False), trade)
        session_expires(bob)
    assert not problems, "\n".join(problems)
    print("as expected")


main()
