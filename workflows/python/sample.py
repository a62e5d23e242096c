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
import json
import sys
import time
import urllib.parse

import tradelock
from tradelock import Execute, Query, Statement
from tradelock.plugin import settings

OP = "WITHDRAW"
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

    def call(self, attempt, method, path, body=None):
        """One exchange on a connection of its own, which repeats nothing: status and JSON."""
        connection = self.kind(self.host, timeout=attempt.left_ms() / 1000 + 0.001)
        try:
            try:
                connection.connect()
            except OSError:
                return None, {}  # no byte has left
            # A tenth is for Python itself, so that the handler returns in time.
            left = attempt.left_ms() * 0.9 / 1000
            if left <= 0:
                return None, {}
            connection.sock.settimeout(left)
            connection.request(method, path, body)
            answer = connection.getresponse()
            said = json.loads(answer.read())
            return answer.status, said if isinstance(said, dict) else {}
        except (OSError, http.client.HTTPException, ValueError):
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
        status, said = self.call(attempt, "POST", "/v1/pay", json.dumps(order))
        if status is None:
            return Execute.NOT_SENT
        take_ref(reply, said)
        # Only a decline that the channel calls final is proof; of what it calls rate limited it
        # documents that it did nothing.
        if (status, said.get("outcome")) == (200, "declined") and said.get("final") is not True:
            return Execute.UNKNOWN
        return {(200, "succeeded"): Execute.SUCCEEDED, (200, "declined"): Execute.DECLINED,
                (202, "accepted"): Execute.ACCEPTED, (429, "rate_limited"): Execute.RETRY_LATER,
                }.get((status, said.get("outcome")), Execute.UNKNOWN)

    def query(self, attempt, reply):
        status, said = self.call(attempt, "GET", f"/v1/payments/{attempt.channel_key}")
        take_ref(reply, said)
        return {(200, "succeeded"): Query.SUCCEEDED, (200, "failed"): Query.FAILED,
                (200, "pending"): Query.PENDING, (404, "not_found"): Query.NOT_FOUND,
                }.get((status, said.get("status")), Query.UNREACHABLE)


def take_ref(reply, said):
    """A payment is not lost for a reference that cannot be stored."""
    if "channel_ref" in said:
        try:
            reply.ref(said["channel_ref"])
        except (TypeError, ValueError, tradelock.Error) as error:
            reply.remark(f"no reference: {error}")


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


def main(config_file, payments):
    with tradelock.Client(config_file, program="sample.py") as client, \
            concurrent.futures.ThreadPoolExecutor(8) as threads, open(payments) as file:
        register(client, settings(config_file))

        def pay(line):
            amount = int(line["amount_minor"])
            order = {"amount_minor": amount, "currency": line["currency"], "payee": line["payee"]}
            return client.run(line["serial_no"], line["cust_no"], OP, json.dumps(order).encode(),
                              amount_minor=amount, currency=line["currency"], batch=line["batch"],
                              wait_ms=2000).status.name

        print(dict(collections.Counter(threads.map(pay, csv.DictReader(file)))))


if __name__ == "__main__":
    main(*sys.argv[1:])
