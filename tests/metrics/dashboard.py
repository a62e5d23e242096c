"""dashboard.py FILE.json METRICS.txt...: what the dashboard names exists: variables, links, and of
each series a channel in its legend.  Prints its expressions as rules, for promtool to check."""
import json
import pathlib
import re
import sys

board = json.loads(pathlib.Path(sys.argv[1]).read_text())
written = "\n".join(pathlib.Path(name).read_text() for name in sys.argv[2:])
source = pathlib.Path(sys.argv[1]).resolve().parent.parent
variables = {v["name"]: v for v in board["templating"]["list"]}
targets = [(p["title"], t) for p in board["panels"] for t in p["targets"]]
notes = board["annotations"]["list"]
expressions = [t["expr"] for _, t in targets] + [n["expr"] for n in notes]


def complain(text):
    sys.exit(f"FAILED: {sys.argv[1]}: {text}")


def labels_of(metric):
    lines = re.findall(rf"^{metric}(?:_bucket)?\{{(.*)\}} ", written, re.M)
    return {label for line in lines for label in re.findall(r'(\w+)="', line)}


used = set(re.findall(r"\$\{?([a-z]\w*)", json.dumps(board)))
if used != set(variables):
    complain(f"uses the variables {sorted(used)}, and has {sorted(variables)}")
for variable in variables.values():
    asked = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"])
    if variable["type"] == "query" and (asked is None or asked[2] not in labels_of(asked[1])):
        complain(f"${variable['name']} asks for what nobody writes: {variable['query']}")

if not board["links"] or not notes:
    complain("it has no link, or no annotation")
for link in board["links"]:
    page = link["url"].removeprefix("file:///usr/share/doc/tradelock/")
    if page == link["url"] and not re.match(r"https?://[^/]+/", page):
        complain(f"leads nowhere: {link['url']}")
    if page != link["url"] and not (source / page).is_file():
        complain(f"leads to a page that is not there: {link['url']}")

for title, target in targets + [(n["name"], n) for n in notes]:
    legend = target.get("legendFormat", target.get("titleFormat"))
    series = re.fullmatch(r"(\w+)(?:\{[^}]*\})?(?: [<>].*)?", target["expr"])
    if series and "channel" in labels_of(series[1]) and "{{channel}}" not in legend:
        complain(f"'{title}' does not say of which channel {series[1]} is")
for panel in board["panels"]:
    if "amount_minor_units" in json.dumps(panel) and "decimals" in panel["fieldConfig"]["defaults"]:
        complain(f"'{panel['title']}' gives each currency the same digits")

print("groups:\n- name: dashboard\n  rules:")
for number, expression in enumerate(expressions):
    plain = re.sub(r"\$\{?[a-z_]+\}?", ".*", expression)
    print(f"  - record: dashboard:{number}\n    expr: {json.dumps(plain)}")
