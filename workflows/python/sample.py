#!/usr/bin/python3
"""Withdrawals in Python: `sample.py CONFIG FILE.csv` pays each line, by eight threads.

The retry worker loads this file, too: `tradelock-worker --plugin .../python.so`, with

    [service-python]
    module = /usr/lib/payments/sample.py
    channel_url = http://127.0.0.1:8099

so that both have the same handlers.  Its tables are those of workflows/TUTORIAL.md.
"""
import collections
import concurrent.futures
import csv
import http.client
import io
import json
import sys
import time
import urllib.parse

import tradelock
from tradelock import Execute, Query, Statement
from tradelock.plugin import settings

OP = "WITHDRAW"
COLUMNS = ["serial_no", "cust_no", "amount_minor", "currency", "payee", "batch"]
TAKE = ("UPDATE account SET balance_minor = balance_minor - :amount_minor"
        " WHERE cust_no = :cust_no")
STATEMENTS = [
    Statement(name="take money", sql=TAKE + " AND balance_minor >= :amount_minor",
              refused="too little money"),
    Statement(name="give back", sql=TAKE.replace("- :", "+ :")),
    Statement(name="take again", sql=TAKE),
    Statement(name="insert ledger",
              sql="INSERT INTO ledger (serial_no, cust_no, amount_minor, channel_ref)"
                  " VALUES (:serial_no, :cust_no, :amount_minor, :channel_ref)")]


class Bank:
    """The handlers, for a channel that keeps keys for ever and can be asked."""

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or parts.path.strip("/"):
            raise ValueError(f"channel_url = {url}: it is http or https, a host and perhaps a port")
        self.host = parts.netloc
        self.kind = (http.client.HTTPSConnection if parts.scheme == "https"
                     else http.client.HTTPConnection)

    def call(self, attempt, reply, method, path, body=None):
        """One exchange on a connection of its own, which repeats nothing: status and JSON."""
        connection = self.kind(self.host, timeout=attempt.left_ms() / 1000 + 0.001)
        try:
            try:
                connection.connect()
            except OSError as error:
                reply.remark(repr(error))
                return None, {}  # no byte has left
            # A tenth is for Python itself, so that the handler returns in time.
            left = attempt.left_ms() * 0.9 / 1000
            if left <= 0:
                return None, {}
            connection.sock.settimeout(left)
            connection.request(method, path, body)
            answer = connection.getresponse()
            # A name in Latin-1 does not hide that a payment succeeded.
            said = json.loads(answer.read().decode("utf-8", "replace"))
            reply.remark(f"HTTP {answer.status} {json.dumps(said)}")
            return answer.status, said if isinstance(said, dict) else {}
        except (OSError, http.client.HTTPException, ValueError) as error:
            reply.remark(repr(error))
            return 0, {}
        finally:
            connection.close()

    def execute(self, attempt, reply):
        # Made of the payload, so that each send of a key says the same, but for the moment after
        # which the channel must not pay: the clock is read first, so a pause makes it earlier.
        now_ms = int(time.time() * 1000)
        order = dict(json.loads(attempt.payload), channel_key=attempt.channel_key,
                     serial_no=attempt.serial_no, cust_no=attempt.cust_no, op_code=attempt.op_code,
                     expires_at_ms=now_ms + attempt.left_ms())
        status, said = self.call(attempt, reply, "POST", "/v1/pay", json.dumps(order))
        if status is None:
            return Execute.NOT_SENT
        if (status, said.get("outcome")) == (200, "succeeded"):
            take_ref(reply, said)
        # Only a decline that the channel calls final is proof; of what it calls rate limited it
        # documents that it did nothing.
        if (status, said.get("outcome")) == (200, "declined") and said.get("final") is not True:
            return Execute.UNKNOWN
        return {(200, "succeeded"): Execute.SUCCEEDED, (200, "declined"): Execute.DECLINED,
                (202, "accepted"): Execute.ACCEPTED, (429, "rate_limited"): Execute.RETRY_LATER,
                }.get((status, said.get("outcome")), Execute.UNKNOWN)

    def query(self, attempt, reply):
        status, said = self.call(attempt, reply, "GET", f"/v1/payments/{attempt.channel_key}")
        if (status, said.get("status")) == (200, "succeeded"):
            take_ref(reply, said)
        return {(200, "succeeded"): Query.SUCCEEDED, (200, "failed"): Query.FAILED,
                (200, "pending"): Query.PENDING, (404, "not_found"): Query.NOT_FOUND,
                }.get((status, said.get("status")), Query.UNREACHABLE)


def take_ref(reply, said):
    """A payment is not lost for a reference.  One that cannot be stored is left out, since the bank's
    statement would contradict a made-up one; the remark has what can be read of it."""
    given = said.get("channel_ref")
    ref = str(given) if type(given) is int else given
    reply.remark("")
    try:
        if not ref or "\ufffd" in ref:  # a byte of it was of no character
            raise ValueError(ref)
        reply.ref(ref)
    except (TypeError, ValueError, tradelock.Error):
        reply.remark("paid, but its reference " + (
            "is missing" if given is None
            else f"is longer than 128 bytes or no text: {json.dumps(given)}"))


def success(attempt, reply, book):
    if attempt.after_failure:  # the failure gave the money back
        book.line("take again")
    book.line("insert ledger")


def register(client, given):
    """What the service and the worker do alike."""
    bank = Bank(given["channel_url"])
    client.register(tradelock.Workflow(
        op_code=OP,
        channel=tradelock.Channel(name="python-bank", idempotent=True, replays_first_answer=True,
                                  can_query=True),
        execute=bank.execute, query=bank.query, statements=STATEMENTS,
        book_prepare=lambda attempt, book: book.line("take money"), book_success=success,
        book_failure=lambda attempt, reply, proof, book: book.line("give back")))


def read(payments):
    """All lines: nothing is paid of a file that is cut, or of another form."""
    def refuse(number, why):
        sys.exit(f"{payments}:{number}: {why}")

    with open(payments, encoding="utf-8-sig", newline="") as file:
        text = file.read()
    if not text.endswith("\n"):
        refuse(text.count("\n") + 1, "the last line has no end: the file may be cut")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    lines = []
    try:
        if next(reader) != COLUMNS:
            refuse(1, "the header must be " + ",".join(COLUMNS))
        for cells in reader:
            if len(cells) != len(COLUMNS):
                refuse(reader.line_num, f"the line does not have {len(COLUMNS)} columns")
            lines.append(dict(zip(COLUMNS, cells), amount_minor=int(cells[2])))
    except (csv.Error, ValueError) as error:
        refuse(reader.line_num, error)
    return lines


def main(config_file, payments):
    lines = read(payments)
    with tradelock.Client(config_file, program="sample.py") as client, \
            concurrent.futures.ThreadPoolExecutor(8) as threads:
        register(client, settings(config_file))

        def pay(line):
            order = {name: line[name] for name in ("amount_minor", "currency", "payee")}
            return client.run(line["serial_no"], line["cust_no"], OP, json.dumps(order).encode(),
                              amount_minor=line["amount_minor"], currency=line["currency"],
                              batch=line["batch"], wait_ms=2000).status.name

        print(dict(collections.Counter(threads.map(pay, lines))))


if __name__ == "__main__":
    main(*sys.argv[1:])
