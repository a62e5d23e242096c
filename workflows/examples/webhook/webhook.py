#!/usr/bin/env python3
"""Receives a bank's web-hooks and files what they say as evidence; or shows a trade.

usage: webhook.py serve --config FILE --secret FILE [--listen ADDRESS:PORT] [--port-file FILE]
       webhook.py state --config FILE SERIAL CUST OP

serve: POST /webhook is signed as www.standardwebhooks.com has it: the headers webhook-id,
webhook-timestamp (seconds) and webhook-signature, "v1," and the HMAC-SHA256 of "ID.TIMESTAMP.BODY"
in base64, in which the secret is what follows "whsec_" in the file, in base64.  The file is ours
and of mode 0600.  The body is JSON:

    {"serial_no": ..., "cust_no": ..., "op_code": ..., "channel_key": ...,
     "status": "succeeded" | "failed" | "pending", "final": true | false, "channel_ref": ...,
     "amount_minor": ..., "currency": ...}

Amount and currency may be left out; what differs from the trade's is filed as a conflict.

It answers 200 when the evidence is filed, now or by an earlier delivery of this id; 404 for a trade
that nobody knows; 401, 400 and 413 for what is not to be believed or read; and 503 when the bank is
to deliver it again.  A worker does the rest: a trade in doubt is looked at at once.

state prints one line of JSON.  Ends with 0 after SIGTERM or SIGINT, 1 when there is no such trade or
it cannot serve, 2 when used wrongly, 3 without a server.
"""

import argparse
import base64
import binascii
import hashlib
import hmac
import http.server
import json
import os
import re
import signal
import socket
import stat
import sys
import threading
import time

import tradelock
from tradelock import Class, Status

BODY_MAX = 65536
TOLERANCE_S = 300  # how old or young a delivery may be
SECRET_MIN = 24  # bytes
NAME = re.compile(r"[!-~]+\Z")
ID = re.compile(r"[A-Za-z0-9_.-]{1,128}\Z")
CURRENCY = re.compile(r"[A-Z]{3}\Z")
REF = re.compile(r"[^\x00-\x1f\x7f\ufffd]+\Z")
BYTES = {"serial_no": 64, "cust_no": 32, "op_code": 32, "channel_key": 64, "channel_ref": 128, "currency": 3}
READ_S = 10  # for a whole request
OUTCOMES = {"succeeded": "SUCCEEDED", "failed": "FAILED", "pending": "PENDING"}


class Refused(Exception):
    """Nothing is filed: the HTTP status and one sentence."""

    def __init__(self, status, sentence):
        super().__init__(sentence)
        self.status = status


def fail(status, sentence):
    print(f"webhook: {sentence}", file=sys.stderr)
    sys.exit(status)


def is_later(status):
    """Whether the same call may be made again: nothing happened, or it is not known."""
    return status.kind in (Class.RETRY, Class.UNKNOWN)


def read_secret(path):
    """The secret, from a file that nobody else can read."""
    try:
        # One descriptor for all looks: nobody puts another file in its place between them.
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            info = os.fstat(file.fileno())
            if not stat.S_ISREG(info.st_mode):
                fail(2, f"the secret {path} is not a regular file")
            if info.st_uid != os.geteuid() or stat.S_IMODE(info.st_mode) & 0o177:
                fail(2, f"the secret {path} must be ours and of mode 0600")
            text = file.read(4096).strip()
    except OSError as error:
        fail(2, f"the secret {path}: {error.strerror}")
    try:
        secret = base64.b64decode(text[6:], validate=True) if text.startswith(b"whsec_") else b""
    except binascii.Error:
        secret = b""
    if len(secret) < SECRET_MIN:
        fail(2, f"the secret {path} must be whsec_ and at least {SECRET_MIN} bytes in base64")
    return secret


def check_signature(secret, headers, body, now):
    """The id of a delivery that the bank has signed lately."""
    found = [headers.get_all(f"webhook-{name}", []) for name in ("id", "timestamp", "signature")]
    if any(len(values) != 1 for values in found):
        raise Refused(401, "the delivery is not signed")
    delivery, timestamp, signatures = (values[0].strip() for values in found)
    if not ID.match(delivery) or not re.match(r"[0-9]{1,12}\Z", timestamp):
        raise Refused(401, "the delivery is not signed")
    wanted = base64.b64encode(hmac.new(secret, f"{delivery}.{timestamp}.".encode() + body,
                                       hashlib.sha256).digest())
    # All are compared, each in the same time, whatever they are.
    fine = False
    for signature in signatures.split(" "):
        version, _, digest = signature.partition(",")
        fine |= version == "v1" and hmac.compare_digest(
            digest.encode("latin-1", "replace"), wanted)
    if not fine:
        raise Refused(401, "the signature is wrong")
    if abs(now - int(timestamp)) > TOLERANCE_S:
        raise Refused(401, "the delivery is too old, or of the future")
    return delivery


def take(body, name, pattern, missing=None):
    value = body.get(name, missing)
    if value is missing and missing is not None:
        return None
    # Half of a surrogate pair, which JSON can name, is no text.
    if not isinstance(value, str) or not pattern.match(value) or \
            not 0 < len(value.encode(errors="replace")) <= BYTES[name] or \
            any("\ud800" <= letter <= "\udfff" for letter in value):
        raise Refused(400, f"{name} is missing or cannot be one")
    return value


def take_ref(body):
    """The reference, if it can be stored: a payment is not lost for its name, and the bank's
    statement would contradict one that was cut."""
    ref = body.get("channel_ref")
    try:
        return take({"channel_ref": str(ref) if type(ref) is int else ref}, "channel_ref", REF)
    except Refused:
        return None


def unique(pairs):
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("a name stands twice")
    return dict(pairs)


def read_event(text):
    """What the body says: the key, and the rest as Client.file_evidence() takes it."""
    try:
        body = json.loads(text.decode("utf-8"), object_pairs_hook=unique)
    except (ValueError, RecursionError):
        raise Refused(400, "the body is not JSON") from None
    if not isinstance(body, dict):
        raise Refused(400, "the body is no object")
    key = tuple(take(body, name, NAME) for name in ("serial_no", "cust_no", "op_code"))
    status = body.get("status")
    if not isinstance(status, str) or status not in OUTCOMES:
        raise Refused(400, "status must be succeeded, failed or pending")
    final = body.get("final", False)
    if not isinstance(final, bool):
        raise Refused(400, "final must be true or false")
    amount = body.get("amount_minor")
    if amount is not None and (not isinstance(amount, int) or isinstance(amount, bool) or
                               not -2**63 <= amount < 2**63):
        raise Refused(400, "amount_minor must be a whole number of minor units")
    # Evidence counts for its own channel key alone, so one that names none is not believed.
    return key, {"outcome": OUTCOMES[status],
                 "channel_key": take(body, "channel_key", NAME),
                 "channel_ref": take_ref(body),
                 "amount_minor": amount,
                 "currency": take(body, "currency", CURRENCY, ""),
                 "final": final and status == "failed"}


class Receiver(http.server.BaseHTTPRequestHandler):
    timeout = READ_S  # of a peer that says nothing
    server_version, sys_version = "webhook", ""
    # Set by serve():
    client = secret = None
    filing = threading.Lock()

    def setup(self):
        super().setup()
        # Nor may a peer that says little keep the program from ending.
        self.reading = threading.Timer(READ_S, self.stop_reading)
        self.reading.daemon = True
        self.reading.start()

    def stop_reading(self):
        try:
            self.connection.shutdown(socket.SHUT_RD)
        except OSError:
            pass  # it has gone

    def finish(self):
        self.reading.cancel()
        super().finish()

    def read_body(self):
        lengths = self.headers.get_all("Content-Length", [])
        if len(lengths) > 1:
            raise Refused(400, "there are two lengths")
        length = "".join(lengths)
        if not re.match(r"[0-9]{1,9}\Z", length) or "Transfer-Encoding" in self.headers:
            raise Refused(411, "the length is missing")
        if int(length) > BODY_MAX:
            raise Refused(413, f"the body is longer than {BODY_MAX} bytes")
        body = self.rfile.read(int(length))
        if len(body) != int(length):
            raise Refused(400, "the body is cut")
        return body

    def file(self, delivery, text):
        key, event = read_event(text)
        remark = f"web-hook {delivery}"
        # The database remembers deliveries, over restarts too.  The lock keeps two deliveries of
        # one id from both finding nothing.  Two processes might; the same twice is harmless.
        with self.filing:
            if any(row.remark == remark for row in self.client.evidence(*key)):
                return False
            # A contradiction is filed as well; operators see it.
            if self.client.file_evidence(*key, source="web-hook", remark=remark,
                                         **event) == Status.NOT_FOUND:
                raise Refused(404, "there is no such trade")
        return True

    def do_POST(self):
        try:
            if self.path != "/webhook":
                raise Refused(404, "there is nothing here")
            body = self.read_body()
            delivery = check_signature(self.secret, self.headers, body, time.time())
            self.answer(200, {"filed": self.file(delivery, body)})
        except Refused as refused:
            self.answer(refused.status, {"error": str(refused)})
        except tradelock.Error as error:
            print(f"webhook: {error}", file=sys.stderr)
            self.answer(503 if is_later(error.status) else 500, {"error": "it could not be filed"})

    def answer(self, status, fields):
        text = json.dumps(fields).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(text)
        self.close_connection = True


def open_client(config):
    try:
        return tradelock.Client(config, program="webhook", session=False)
    except tradelock.Error as error:
        return fail(3 if is_later(error.status) else 1, str(error))


def write_port_file(path, port):
    with open(f"{path}.new", "w", encoding="ascii") as file:
        file.write(f"{port}\n")
    os.rename(f"{path}.new", path)


def serve(options):
    match = re.match(r"([0-9.]+):([0-9]{1,5})\Z", options.listen)
    if not match or int(match[2]) > 65535:
        fail(2, "--listen must be an IPv4 address and a port, such as 127.0.0.1:8080")
    Receiver.secret = read_secret(options.secret)
    Receiver.client = open_client(options.config)
    try:
        server = http.server.ThreadingHTTPServer((match[1], int(match[2])), Receiver)
    except OSError as error:
        fail(1, f"cannot listen on {options.listen}: {error.strerror}")

    def stop(*_):
        # shutdown() waits for serve_forever(), which this thread is in.
        threading.Thread(target=server.shutdown).start()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    # Whoever is being answered is answered before the end.
    server.daemon_threads = False
    if options.port_file:
        write_port_file(options.port_file, server.server_address[1])
    print(f"listening on http://{match[1]}:{server.server_address[1]}", flush=True)
    server.serve_forever()
    server.server_close()
    Receiver.client.close()


def state(options):
    with open_client(options.config) as client:
        found = client.look(options.serial_no, options.cust_no, options.op_code)
    if found.status == Status.NOT_FOUND:
        fail(1, "there is no such trade")
    if not found.epoch:
        fail(3 if is_later(found.status) else 1, found.message)
    print(json.dumps({"status": found.status.name, "epoch": found.epoch, "sends": found.sends}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    serving = commands.add_parser("serve", allow_abbrev=False)
    showing = commands.add_parser("state", allow_abbrev=False)
    for command in (serving, showing):
        command.add_argument("--config", required=True)
    serving.add_argument("--secret", required=True)
    serving.add_argument("--listen", default="127.0.0.1:0")
    serving.add_argument("--port-file")
    for name in ("serial_no", "cust_no", "op_code"):
        showing.add_argument(name)
    options = parser.parse_args()
    serve(options) if options.command == "serve" else state(options)


if __name__ == "__main__":
    main()
