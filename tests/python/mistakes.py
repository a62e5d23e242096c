"""mistakes.py CONFIG FUNCTIONS SOURCE: wrong calls and handlers, on a server; says what is not so.

FUNCTIONS are those that the headers of a service declare; each is in the module, and is called by
the package in SOURCE or left out for one of the reasons below.
"""
import http.server
import os
import pathlib
import re
import signal
import sys
import threading

import tradelock
from tradelock import (Channel, Client, Error, Execute, FormerChannel, Query, Refused, State, Status,
                       Workflow)
from tradelock import _tradelock

LEFT_OUT = {
    r"tl_lock_.*|tl_may_send|tl_show.*|tl_state_name": "bare locks: a workflow has them",
    r"tl_books?_(new|free|clear|check|refuse)": "books of bare locks",
    r"tl_client_completed.*": "event loops in C",
    r"tl_work_.*|tl_log_.*": "pieces of work begin by themselves",
    r"tl_channel_key|tl_client_site": "an attempt has its key",
    r"tl_client_(session|alive_ms|loss_fd|stats|policy)": "metrics are the worker's",
    r"tl_worker_(stop|wait)": "close() does both",
    r"tl_status_name|tl_class_name|tl_proof_.*|tl_workflow_operation": "names are Python's enums",
}


def functions(file, source):
    text = "".join(path.read_text() for path in pathlib.Path(source).rglob("*.py"))
    for name in pathlib.Path(file).read_text().split():
        assert hasattr(_tradelock.lib, name), f"{name} is not in the module"
        used = re.search(rf"\blib\.{name}\b", text)
        reasons = [why for names, why in LEFT_OUT.items() if re.fullmatch(names, name)]
        assert used or reasons, f"{name} is neither called nor left out"


def raises(kind, words, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind as error:
        assert words in str(error), f"{error!r} does not say {words}"
        return error
    raise AssertionError(f"nothing was raised: {words}")


def types(client):
    raises(TypeError, "Channel.name must be str, not int", Channel, name=5)
    raises(TypeError, "Channel has no field promise", Channel, promise=1)
    raises(ValueError, "Channel.name has a NUL inside", Channel, name="a\0b")
    raises(TypeError, "Channel.window_ms must be int, not float", Channel, window_ms=1.5)
    raises(TypeError, "Workflow.channel must be a Channel, not str", Workflow, channel="bank")
    raises(TypeError, "Workflow.execute must be callable, not str", Workflow, execute="pay")
    raises(TypeError, "Workflow has no field sql_prepare", Workflow, sql_prepare=print)
    raises(TypeError, "Workflow.statements must be a list", Workflow, statements="SELECT 1")
    raises(TypeError, "Workflow.statements must be a list", Workflow, statements=[Channel(name="b")])
    raises(TypeError, "Workflow.former must be a list", Workflow, former=[Channel(name="b")])
    raises(IndexError, "", tradelock.Policy, schedule_ms=[1] * 17)
    raises(TypeError, "workflow must be a Workflow, not int", client.register, 5)
    raises(TypeError, "request.payload must be bytes, not str", client.run, "S", "C1", "OP", "x")
    raises(TypeError, "request.serial_no must be str, not bytes", client.run, b"S", "C1", "OP", b"x")
    raises(ValueError, "must have 32 bytes", client.run, "S", "C", "OP", b"", fingerprint=b"x")
    raises(OverflowError, "", client.run, "S", "C", "OP", b"", amount_minor=1 << 63)
    error = raises(Error, "TL_UNKNOWN_OPERATION", client.run, "S", "C1", "NONE", b"")
    assert error.status == Status.UNKNOWN_OPERATION
    raises(Error, "TL_INVALID", client.look, "S S", "C1", "OP")
    raises(Error, "TL_UNSAFE", client.register,
           Workflow(op_code="UNSAFE", channel=Channel(name="b"), execute=print))
    assert client.look("NEVER", "C1", "OP").status == Status.NOT_FOUND
    assert client.batch("never").status == Status.NOT_FOUND


class Handlers:
    """Each does what the payload says."""

    def __init__(self):
        self.kept = None

    def execute(self, attempt, reply):
        self.kept = (attempt, reply)
        reply.remark("before")
        if attempt.payload == b"interrupt":
            os.kill(os.getpid(), signal.SIGINT)
        return eval(attempt.payload)

    def prepare(self, attempt, book):
        if attempt.payload == b"refuse":
            raise Refused("not today")
        if attempt.payload == b"broken":
            book.line("none of it")
        if attempt.payload == b"raise":
            raise KeyError("in prepare")
        book.line("note", note="für \N{EURO SIGN}", size=attempt.amount_minor, proof=b"\0\1",
                  nothing=None)

    def success(self, attempt, reply, book):
        assert reply.channel_ref == "R1" and reply.result == b"\0r", reply
        return "a string" if attempt.serial_no == "APPLY" else None


def handlers(client, lines):
    told = Handlers()
    client.register(Workflow(
        op_code="HAND", channel=Channel(name="hand", can_query=True), execute=told.execute,
        query=lambda attempt, reply: Query.UNREACHABLE, book_prepare=told.prepare,
        book_success=told.success, statements=[tradelock.Statement(
            name="note", sql="INSERT INTO note (serial_no, note, size, proof, nothing) VALUES"
            " (:serial_no, :note, :size, :proof, :nothing)",
            values="note text, size int, proof bytes, nothing int")]))

    def run(serial_no, payload, **more):
        return client.run(serial_no, "C1", "HAND", payload, amount_minor=7, currency="EUR", **more)

    def logged(words):
        assert any(words in line.message for line in lines), f"the log does not say {words}"

    paid = run("PAID", b"(reply.ref('R1'), reply.result(b'\\0r'), Execute.SUCCEEDED)[-1]")
    assert paid.status == Status.SUCCEEDED and paid.paid and not paid.not_paid, paid
    assert paid.own == 1 and paid.channel_ref == "R1" and paid.result == b"\0r", paid
    assert paid.state == State.SUCCEEDED and paid.thread_no == tradelock.thread_uuid(), paid
    assert run("PAID", paid.payload or
               b"(reply.ref('R1'), reply.result(b'\\0r'), Execute.SUCCEEDED)[-1]").paid
    attempt, reply = told.kept
    assert attempt.amount_minor == 7 and attempt.left_ms() >= 0
    raises(ValueError, "the handler has returned", reply.ref, "late")

    for serial_no, payload, words in (
            ("RAISED", b"1 / 0", "execute raised"), ("NONE", b"None", "not None"),
            ("QUERY", b"Query.FAILED", "Query.FAILED"), ("NUMBER", b"2", "not 2"),
            ("TEXT", b"reply.ref(5)", "channel_ref must be str, not int"),
            ("LONG", b"reply.ref('x' * 129)", "TL_INVALID"), ("EXIT", b"sys.exit(0)", "SystemExit")):
        try:
            answer = run(serial_no, payload)
        except SystemExit:
            assert serial_no == "EXIT"
            answer = client.look(serial_no, "C1", "HAND")
        assert answer.status == Status.IN_DOUBT and not answer.not_paid, (serial_no, answer)
        logged(words)
    raises(KeyboardInterrupt, "", run, "INTERRUPT", b"interrupt")
    assert client.look("INTERRUPT", "C1", "HAND").status == Status.IN_DOUBT
    declined = run("DECLINED", b"(reply.retryable(), Execute.DECLINED)[-1]")
    assert declined.status == Status.FAILED and declined.not_paid and declined.retryable, declined
    assert declined.proof == tradelock.Proof.DECLINED and declined.remark == "before", declined

    refused = run("REFUSED", b"refuse")
    assert refused.status == Status.REFUSED and refused.remark == "not today", refused
    for serial_no, payload in (("BROKEN", b"broken"), ("KEY", b"raise")):
        failed = run(serial_no, payload)
        assert failed.status == Status.CALLBACK_FAILED and not failed.not_paid, failed
        assert client.look(serial_no, "C1", "HAND").status == Status.NOT_FOUND
    logged("KeyError: 'in prepare'")
    # Paid, and its rows cannot be written: never failed.
    applied = run("APPLY", b"(reply.ref('R1'), reply.result(b'\\0r'), Execute.SUCCEEDED)[-1]")
    assert not applied.paid and not applied.not_paid, applied
    logged("book_success must return None")
    mismatch = run("PAID", b"Execute.DECLINED")
    assert mismatch.status == Status.MISMATCH and not mismatch.not_paid, mismatch
    assert run("TRACE", b"Execute.NOT_SENT", batch="b\N{EURO SIGN}").status == Status.QUEUED
    total = client.batch("b\N{EURO SIGN}")
    assert (total.trades, total.open, total.complete) == (1, 1, 0), total
    assert [one.status for one in total.sums] == [Status.QUEUED], total
    assert [trade.serial_no for trade in client.trades(batch="b\N{EURO SIGN}")] == ["TRACE"]
    assert {"PAID", "TRACE", "APPLY"} <= {trade.serial_no for trade in client.trades(cust_no="C1")}


class Bank(http.server.BaseHTTPRequestHandler):
    """Pays whatever it is sent, and says so with this reference."""
    ref = None

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.wfile.write(b'HTTP/1.1 200 OK\r\n\r\n{"outcome":"succeeded","status":"succeeded"'
                         + self.ref + b"}")

    do_POST = do_GET

    def log_message(self, *_):
        pass


def references(client, source):
    """The sample loses no payment for a reference: the row has the bank's own or none."""
    sys.path.insert(0, source)
    import sample

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Bank)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    bank = sample.Bank(f"http://127.0.0.1:{server.server_address[1]}")
    for op, execute in (("SENT", bank.execute), ("ASKED", lambda *_: Execute.UNKNOWN)):
        client.register(Workflow(op_code=op, channel=Channel(name="odd", can_query=True),
                                 execute=execute, query=bank.query))
    for number, (ref, kept, remark) in enumerate((
            (b'"M\xc3\xbcller"', "Müller", ""), (b"4711", "4711", ""),
            (b"12345678901234567890", "12345678901234567890", ""),
            (b'"M\xfcller"', "", 'no text: "M\\ufffdller"'),
            (b'"%s"' % (b"9" * 129), "", 'longer than 128 bytes or no text: "999'),
            (b'"a\\u0000b"', "", "or no text"), (b'"a\\nb"', "", "or no text"),
            (b'"\\ud800"', "", "or no text"), (b"true", "", "no text: true"),
            (b"{}", "", "no text: {}"), (b"null", "", "reference is missing"),
            (None, "", "reference is missing"))):
        Bank.ref = b"" if ref is None else b',"channel_ref":' + ref
        name = f"R{number}"
        assert client.run(name, "C1", "SENT", b"{}").paid, (ref, client.look(name, "C1", "SENT"))
        assert client.run(name, "C1", "ASKED", b"{}").status == Status.IN_DOUBT
        with client.worker(threads=1):
            client.await_(name, "C1", "ASKED", wait_ms=20000)
        for op in ("SENT", "ASKED"):
            trade = client.look(name, "C1", op)
            assert trade.paid and trade.channel_ref == kept and remark in trade.remark, (ref, trade)
    Bank.ref = b","
    assert client.run("NONE-OF-IT", "C1", "SENT", b"{}").status == Status.IN_DOUBT
    assert "JSONDecodeError" in client.look("NONE-OF-IT", "C1", "SENT").remark
    server.shutdown()
    server.server_close()


def former(config, client):
    """A trade stays with the channel that its row names, and with the handlers of that one."""
    def found(attempt, reply):
        reply.ref("R-before")
        return Query.SUCCEEDED

    client.register(Workflow(op_code="MOVED", channel=Channel(name="before", can_query=True),
                             execute=lambda *_: Execute.UNKNOWN, query=lambda *_: Query.PENDING))
    assert client.run("M1", "C1", "MOVED", b"").status == Status.IN_DOUBT
    with Client(config, log=None) as later:
        later.register(Workflow(
            op_code="MOVED", channel=Channel(name="now", can_query=True),
            execute=lambda *_: Execute.UNKNOWN, query=lambda *_: Query.FAILED,
            former=[FormerChannel(channel=Channel(name="older", can_query=True),
                                  query=lambda *_: Query.FAILED),
                    FormerChannel(channel=Channel(name="before", can_query=True), query=found)]))
        with later.worker(threads=1):
            moved = later.await_("M1", "C1", "MOVED", wait_ms=20000)
    assert moved.paid and moved.channel_ref == "R-before", moved


def leaving(client):
    """What leaves the interpreter in one payment's handler ends nothing of the next one's."""
    def query(attempt, reply):
        if attempt.serial_no == "L1":
            sys.exit("left")
        reply.ref("R-L2")
        return Query.SUCCEEDED

    client.register(Workflow(op_code="LEAVE", channel=Channel(name="l", can_query=True),
                             execute=lambda attempt, reply: Execute.UNKNOWN, query=query))
    for serial_no in ("L1", "L2"):
        assert client.run(serial_no, "C1", "LEAVE", b"").status == Status.IN_DOUBT
    with client.worker(threads=1):
        assert client.await_("L2", "C1", "LEAVE", wait_ms=20000).paid


def closing(config, client):
    inside, leave = threading.Event(), threading.Event()

    def wait(attempt, reply):
        inside.set()
        leave.wait()
        raises(Error, "a handler closes nothing", client.close)
        return Execute.NOT_SENT

    client.register(Workflow(op_code="WAIT", channel=Channel(name="w", can_query=True),
                             execute=wait, query=lambda attempt, reply: Query.NOT_FOUND))
    answers = []
    thread = threading.Thread(
        target=lambda: answers.append(client.run("W1", "C1", "WAIT", b"", wait_ms=0)))
    thread.start()
    inside.wait()
    raises(Error, "1 calls are under way", client.close)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            raises(Error, "TL_WRONG_PROCESS", client.look, "W1", "C1", "WAIT")
            client.close()
            with Client(config, log=None, session=False) as mine:
                code = 0 if mine.look("W1", "C1", "WAIT").status == Status.BUSY else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    leave.set()
    thread.join()
    assert answers[0].state == State.QUEUED and answers[0].status == Status.QUEUED, answers
    leaving(client)
    worker = client.worker(threads=1)
    assert isinstance(worker.check().status, Status)
    client.close()
    client.close()
    raises(Error, "the worker is closed", worker.check)
    raises(Error, "the client is closed", client.look, "W1", "C1", "WAIT")
    raises(Error, "the client is closed", client.run, "W2", "C1", "WAIT", b"")
    raises(Error, "the client is closed", lambda: list(client.trades(cust_no="C1")))
    raises(Error, "the client is closed", client.worker)


def main(config, names, source):
    functions(names, source)
    raises(Error, "TL_BAD_CONFIG", Client, "/nonexistent")
    lines = []
    client = Client(config, program="mistakes", log=lines.append)
    types(client)
    handlers(client, lines)
    references(client, source)
    former(config, client)
    closing(config, client)
    left_open = Client(config, log=lines.append)  # closed by the interpreter's end
    print("as expected, and", left_open.look("PAID", "C1", "HAND").status)


main(*sys.argv[1:])
