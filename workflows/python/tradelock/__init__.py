"""Pay exactly once, from Python.

The contract is that of <tradelock/workflow.h>; names of fields and answers are those of the header.
A Client opens, registers each Workflow, and then any thread may call run(), look(), await_(),
trades(), batch(), evidence(), file_evidence() and worker().

An Error is raised for what cannot be opened or registered, and for calls that are wrong (class
CALLER).  What becomes of a payment is never raised: it is an answer with a status, of which
`answer.paid` or `answer.not_paid` is true, or neither.

No exception of a handler passes through the library.  Each becomes the safe answer, with its text
in the log and never a decline: execute and cancel UNKNOWN, query UNREACHABLE, and those of business
rows CALLBACK_FAILED, but Refused from book_prepare, which is TL_REFUSED.  KeyboardInterrupt and
SystemExit go on when the library's call is over.
"""
import atexit
import contextlib
import enum
import logging
import os
import threading
import traceback
import types

from ._tradelock import ffi, lib

__version__ = ffi.string(lib.tl_version()).decode()


# ----------------------------------------------------------------------------- words --

_ENUMS = {}


def _words(kind, name, ctype, prefix):
    of = ffi.typeof(ctype)
    numbers = of.relements
    _ENUMS[of] = kind(name, {word[len(prefix):]: numbers[word]
                             for word in sorted(numbers, key=numbers.get)
                             if not word.endswith("_")}, module=__name__)
    return _ENUMS[of]


class _Proving(enum.IntEnum):
    """A status, and what it proves."""

    @classmethod
    def _missing_(cls, value):
        """A later library may know more of them."""
        later = int.__new__(cls, value)
        later._name_, later._value_ = _text(lib.tl_status_name(value))[len("TL_"):], value
        return later

    @property
    def paid(self):
        return bool(lib.tl_paid(self))

    @property
    def not_paid(self):
        """Only then may the payment be made by other means."""
        return bool(lib.tl_not_paid(self))

    @property
    def kind(self):
        """What to do next, by Class."""
        return Class(lib.tl_status_class(self))

    __str__ = enum.Enum.__str__


Status = _words(_Proving, "Status", "tl_status", "TL_")
Class = _words(enum.IntEnum, "Class", "tl_class", "TL_CLASS_")
Execute = _words(enum.IntEnum, "Execute", "tl_execute_result", "TL_EXECUTE_")
Query = _words(enum.IntEnum, "Query", "tl_query_result", "TL_QUERY_")
Cancel = _words(enum.IntEnum, "Cancel", "tl_cancel_result", "TL_CANCEL_")
Proof = _words(enum.IntEnum, "Proof", "tl_proof", "TL_PROOF_")
State = _words(enum.IntEnum, "State", "tl_state", "TL_STATE_")
Lane = _words(enum.IntEnum, "Lane", "tl_lane", "TL_LANE_")
Level = _words(enum.IntEnum, "Level", "tl_level", "TL_")


class Error(Exception):
    """A status with its sentence.  It says nothing of a payment that an earlier call made."""

    def __init__(self, status, message):
        super().__init__(f"TL_{status.name}: {message or _text(lib.tl_status_text(status))}")
        self.status, self.message = status, message


class Refused(Exception):
    """From book_prepare: no row is left behind, and the caller of run() hears TL_REFUSED."""


# ------------------------------------------------------------- from C, always a copy --

def _text(chars):
    return None if chars == ffi.NULL else ffi.string(chars).decode("utf-8", "replace")


class Record(types.SimpleNamespace):
    """The fields of a struct of the headers; bytes for what has a size beside it."""


class Outcome(Record):
    """An answer of run(), or a trade: status, mostly a message, and what the header has more."""

    @property
    def paid(self):
        return self.status.paid

    @property
    def not_paid(self):
        return self.status.not_paid


class Attempt(Record):
    """What a handler is called with."""

    def left_ms(self):
        """What is left of the time to send: asked for directly before the request leaves."""
        return lib.tl_attempt_left_ms(ffi.new("tl_attempt *", {"until_ms": self.until_ms}))


def _record(pointer, make=Record):
    values = {}
    fields = ffi.typeof(pointer).item.fields
    sizes = {name for name, _ in fields if name.endswith("_size")}
    for name, field in fields:
        kind, value = field.type, getattr(pointer, name)
        if name == "version" or name in sizes:
            continue
        if kind in _ENUMS:
            value = _ENUMS[kind]._value2member_map_.get(value, value)
        elif kind.kind == "struct":
            values.update(vars(_record(ffi.addressof(pointer, name))))
            continue
        elif name + "_size" in sizes:
            size = getattr(pointer, name + "_size")
            value = bytes(ffi.buffer(ffi.cast("char *", value), size)) if size else b""
        elif kind.kind == "array" and kind.item.cname == "unsigned char":
            value = bytes(ffi.buffer(value))
        elif kind.kind == "array" or (kind.kind == "pointer" and kind.item.cname == "char"):
            value = _text(value)
        elif kind.kind == "pointer":
            continue
        elif isinstance(value, bytes):
            value = (Proof._value2member_map_.get(ord(value), Proof.NONE) if name == "proof"
                     else value.decode("ascii", "replace"))
        values[name] = value
    return make(**values)


# ------------------------------------------------------- to C: checked, and then kept --

def _wrong(where, wanted, value):
    return TypeError(f"{where} must be {wanted}, not {type(value).__name__}")


def _chars(where, value):
    if not isinstance(value, str):
        raise _wrong(where, "str", value)
    if "\0" in value:
        # It would be cut there, and mean something else.
        raise ValueError(f"{where} has a NUL inside")
    return ffi.new("char[]", value.encode("utf-8"))


def _bytes(where, value):
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise _wrong(where, "bytes", value)
    return bytes(value)


class _Struct:
    """A struct of the headers, by the names that its fields have there."""
    _key = ("serial_no", "cust_no", "op_code")

    def __init__(self, **fields):
        self._c = ffi.new(f"{self._name} *")
        self._keep, self.handlers = [], {}
        self._kinds = {name: field.type for name, field in ffi.typeof(self._name).fields}
        if "version" in self._kinds:
            self._c.version = getattr(lib, f"{self._name.upper()}_VERSION")
        for name, value in fields.items():
            if value is not None:
                self._set(name, value)

    def _own(self, data):
        self._keep.append(data)
        return data

    def _set(self, name, value):
        where = f"{type(self).__name__}.{name}"
        kind = self._kinds.get(name)
        if name in self._key and "key" in self._kinds:
            setattr(self._c.key, name, self._own(_chars(where, value)))
        elif kind is None or name == "version" or name.endswith(("_size", "_count")):
            raise TypeError(f"{type(self).__name__} has no field {name}")
        elif kind.kind == "struct":
            if not isinstance(value, _Struct) or ffi.typeof(value._name) is not kind:
                raise _wrong(where, "a " + kind.cname.removeprefix("struct tl_").title(), value)
            setattr(self._c, name, self._own(value)._c[0])
        elif kind.kind == "array":
            setattr(self._c, name, list(value))
            setattr(self._c, name.replace("_ms", "") + "_count", len(value))
        elif kind.kind == "function":
            if not hasattr(lib, f"tradelock_{name}"):
                raise TypeError(f"{type(self).__name__} has no field {name}")
            if not callable(value):
                raise _wrong(where, "callable", value)
            self.handlers[name] = value
            setattr(self._c, name, getattr(lib, f"tradelock_{name}"))
        elif kind.kind == "pointer":
            self._point(name, where, kind.item, value)
        elif not isinstance(value, int):
            raise _wrong(where, "int", value)
        else:
            setattr(self._c, name, value)

    def _point(self, name, where, item, value):
        if item.kind == "struct":
            value = list(value)
            if not all(isinstance(one, _Struct) and ffi.typeof(one._name) is item for one in value):
                raise TypeError(f"{where} must be a list of tradelock's own {name}")
            items = [self._own(one)._c[0] for one in value]
            setattr(self._c, name, self._own(ffi.new(f"{item.cname}[]", items)))
            setattr(self._c, {"statements": "statement"}.get(name, name) + "_count", len(items))
        elif item.cname == "char":
            setattr(self._c, name, self._own(_chars(where, value)))
        elif item.cname == "unsigned char":
            if len(_bytes(where, value)) != lib.TL_FINGERPRINT:
                raise ValueError(f"{where} must have {lib.TL_FINGERPRINT} bytes")
            setattr(self._c, name, self._own(ffi.new("unsigned char[]", bytes(value))))
        elif name + "_size" in self._kinds:
            data = _bytes(where, value)
            setattr(self._c, name, self._own(ffi.new("char[]", data)))
            setattr(self._c, name + "_size", len(data))
        else:
            raise TypeError(f"{type(self).__name__} has no field {name}")


def _struct(name, ctype, meaning=None):
    return type(name, (_Struct,), {"_name": ctype, "__doc__": meaning, "__module__": __name__})


Channel = _struct("Channel", "tl_channel", "What the channel promises: believed, never tried out.")
Policy = _struct("Policy", "tl_policy", "How patient it is; what is left out has the settings'.")
Statement = _struct("Statement", "tl_statement", "Business rows; :names are values of the line.")
FormerChannel = _struct("FormerChannel", "tl_former_channel", "A channel of an earlier release.")
Workflow = _struct("Workflow", "tl_workflow", """An operation: the fields of the header, and handlers:

    execute(attempt, reply) -> Execute      query(...) -> Query      cancel(...) -> Cancel
    book_prepare(attempt, book)             book_success(attempt, reply, book)
    book_failure(attempt, reply, proof, book)
""")
_Request = _struct("request", "tl_request")
_ClientOptions = _struct("Client", "tl_client_options")
_WorkerOptions = _struct("Worker", "tl_worker_options")
_Trades = _struct("trades", "tl_trades")
_Amount = _struct("amount", "tl_payment_amount")
_Evidence = _struct("evidence", "tl_evidence")


# -------------------------------------------------------------------- calls and answers --

_thread = threading.local()


def _sentence():
    return _text(lib.tl_error_message())


def _called(function, *arguments):
    return Status(function(*arguments)), _sentence()


def _ask(function, *arguments):
    """The status and the sentence; Error where the call itself is wrong."""
    status, message = _called(function, *arguments)
    left = _thread.__dict__.pop("left", None)
    if left is not None:
        raise left
    if status.kind == Class.CALLER and status != Status.NOT_FOUND:
        raise Error(status, message)
    return status, message


def _must(function, *arguments):
    status, message = _ask(function, *arguments)
    if status.kind != Class.DONE:
        raise Error(status, message)


def thread_uuid():
    """The identity of this thread, as its rows and log lines have it."""
    return _text(lib.tl_thread_uuid())


# --------------------------------------------------------------------------- handlers --

class _Bound:
    """Whom a callback of the library is for."""

    def __init__(self, client, handlers):
        self.client, self.handlers, self.handle = client, handlers, ffi.new_handle(self)

    def failed(self, name, attempt, error):
        """Logs what a handler raised, and returns it as a sentence."""
        if not isinstance(error, Exception):
            _thread.left = error
        words = f"{type(error).__name__}: {error}".replace("\0", " ").split()
        text = ffi.new("char[]", " ".join(words).encode("utf-8", "backslashreplace"))
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = _chars(name, f"{name} raised at {frame.filename}:{frame.lineno}: ")
        lib.tl_client_log(self.client, lib.TL_WARNING, ffi.addressof(attempt, "key"),
                          ffi.cast("uint64_t", 0), b"%s%s", place, text)
        return text


@contextlib.contextmanager
def _in_handler():
    _thread.handlers = getattr(_thread, "handlers", 0) + 1
    try:
        yield
    finally:
        _thread.handlers -= 1


class _Lent:
    """What a handler may use until it returns."""

    def __init__(self, pointer):
        self._pointer = pointer

    @property
    def _c(self):
        if self._pointer is None:
            raise ValueError("the handler has returned, and took this with it")
        return self._pointer


class Reply(_Lent):
    """What execute, query and cancel say besides what they return."""

    def _say(self, function, *arguments):
        # What another handler of this thread left behind is for the next call of a Client.
        status, message = _called(function, self._c, *arguments)
        if status.kind != Class.DONE:
            raise Error(status, message)

    def ref(self, channel_ref):
        self._say(lib.tl_reply_ref, _chars("channel_ref", channel_ref))

    def result(self, result):
        data = _bytes("result", result)
        self._say(lib.tl_reply_result, data, len(data))

    def remark(self, remark):
        lib.tl_reply_remark(self._c, b"%s", _chars("remark", remark))

    def retry_after(self, after_ms):
        self._say(lib.tl_reply_retry_after, after_ms)

    def retryable(self, yes=True):
        self._c.retryable = bool(yes)


class Book(_Lent):
    """The lines of one transaction."""

    def line(self, statement, **values):
        lib.tl_book_line(self._c, _chars("statement", statement))
        for name, value in values.items():
            where = _chars(name, name)
            if value is None:
                lib.tl_book_null(self._c, where)
            elif isinstance(value, int):
                lib.tl_book_int(self._c, where, value)
            elif isinstance(value, str):
                lib.tl_book_text(self._c, where, _chars(name, value))
            else:
                data = _bytes(name, value)
                lib.tl_book_bytes(self._c, where, data, len(data))


def _channel_handler(name, kind):
    def call(context, attempt, reply):
        bound, lent = ffi.from_handle(context), Reply(reply)
        try:
            with _in_handler():
                answer = bound.handlers[name](_record(attempt, Attempt), lent)
            if not isinstance(answer, kind):
                raise TypeError(f"{name} must return a tradelock.{kind.__name__}, not {answer!r}")
            return answer
        except BaseException as error:
            lib.tl_reply_remark(reply, b"%s", bound.failed(name, attempt, error))
            return 0
        finally:
            lent._pointer = None

    ffi.def_extern(name=f"tradelock_{name}", error=0)(call)


def _book_handler(name):
    def call(context, attempt, reply, *rest):
        bound, book = ffi.from_handle(context), Book(rest[-1])
        try:
            seen = [] if name == "book_prepare" else [_record(reply), *map(Proof, rest[:-1])]
            with _in_handler():
                if bound.handlers[name](_record(attempt, Attempt), *seen, book) is not None:
                    raise TypeError(f"{name} must return None")
            return lib.TL_OK
        except BaseException as error:
            if name == "book_prepare" and isinstance(error, Refused):
                lib.tl_reply_remark(reply, b"%s", _chars("Refused", str(error)))
                return lib.TL_REFUSED
            return lib.tl_error_report(lib.TL_CALLBACK_FAILED, b"%s",
                                       bound.failed(name, attempt, error))
        finally:
            book._pointer = None

    ffi.def_extern(name=f"tradelock_{name}", error=lib.TL_CALLBACK_FAILED)(call)


for _name, _kind in (("execute", Execute), ("query", Query), ("cancel", Cancel)):
    _channel_handler(_name, _kind)
for _name in ("book_prepare", "book_success", "book_failure"):
    _book_handler(_name)


def _kept(_kind, error, _trace):
    """A row that was not collected is missing in no answer: the call raises this."""
    _thread.left = error


def _collector(name, make):
    def collect(context, pointer):
        ffi.from_handle(context).append(_record(pointer, make))
        return 0

    ffi.def_extern(name=f"tradelock_{name}", error=1, onerror=_kept)(collect)


for _name, _make in (("trade", Outcome), ("sum", Outcome), ("evidence", Record)):
    _collector(_name, _make)

_LOGGER = logging.getLogger("tradelock")
_LEVELS = {Level.DEBUG: logging.DEBUG, Level.INFO: logging.INFO, Level.WARNING: logging.WARNING,
           Level.ALARM: logging.CRITICAL}


def _log(line):
    key = " ".join(filter(None, (line.serial_no, line.cust_no, line.op_code)))
    _LOGGER.log(_LEVELS[line.level], "%s%s", line.message, f" [{key}]" if key else "",
                extra={"tradelock": line})


def _dropped(_kind, error, _trace):
    if not isinstance(error, Exception):
        _thread.left = error


@ffi.def_extern(name="tradelock_log", onerror=_dropped)
def _log_called(context, line):
    ffi.from_handle(context).handlers["log"](_record(line))


# ---------------------------------------------------------------------------- the client --

_open = set()
os.register_at_fork(after_in_child=_open.clear)  # its threads are the parent's


def _check_outside():
    if getattr(_thread, "handlers", 0):
        raise Error(Status.IN_CALLBACK, "a handler closes nothing: it would wait for itself")


class _Closing:
    """What is closed once, by nobody while somebody is inside a call of it."""

    def __init__(self):
        self._inside, self._closed, self._process = [], False, os.getpid()

    @contextlib.contextmanager
    def _in_use(self):
        # First this, then the look; _closing() does it in the other order, so one sees the other.
        self._inside.append(None)
        try:
            if self._closed:
                raise Error(Status.WRONG_STATE, f"the {type(self).__name__.lower()} is closed")
            yield
        finally:
            self._inside.pop()

    def _closing(self):
        """Whether it is to be closed now.  The child of a fork has nobody inside."""
        _check_outside()
        was, self._closed = self._closed, True
        if not was and self._inside and os.getpid() == self._process:
            self._closed = False
            raise Error(Status.WRONG_STATE, f"{len(self._inside)} calls are under way")
        return not was

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Client(_Closing):
    """Settings, connections, a session and the workflows that are registered.

    log(line) gets each line of the log, from any thread, and calls nothing of this module; without
    it the lines go to logging.getLogger("tradelock").  session=False is for a web front that only
    looks.  More options are those of tl_client_options.  A child of os.fork() opens its own.
    """

    def __init__(self, config_file, *, program="python", log=_log, session=True, **options):
        super().__init__()
        given = _ClientOptions(config_file=config_file, program=program, log=log,
                               flags=0 if session else lib.TL_CLIENT_NO_SESSION, **options)
        self._bound = [_Bound(None, given.handlers)]
        given._c.log_context = self._bound[0].handle
        made, registry = ffi.new("tl_client **"), ffi.new("tl_workflows **")
        try:
            _must(lib.tl_client_open, made, given._c)
            _must(lib.tl_workflows_new, registry, made[0])
        except BaseException:  # an interrupt comes after the call that it met
            lib.tl_workflows_free(registry[0])
            lib.tl_client_close(made[0])
            raise
        self._client, self._workflows, self._workers, self._own = made[0], registry[0], set(), True
        # Until it is closed the library's threads call back into it.
        _open.add(self)

    @classmethod
    def _borrow(cls, client, workflows):
        """The client and the registry of the program that loaded the plug-in."""
        self = cls.__new__(cls)
        super().__init__(self)
        self._client, self._workflows = client, workflows
        self._bound, self._workers, self._own = [], set(), False
        return self

    def close(self):
        """Ends workers and the session.  Error, and no session ends, while calls are under way."""
        _check_outside()
        for worker in list(self._workers):
            worker.close()
        if self._closing() and self._own:
            lib.tl_workflows_free(self._workflows)
            lib.tl_client_close(self._client)
        _open.discard(self)

    def register(self, workflow):
        """Registers a Workflow; Error says which field is wrong, missing or unsafe, and why."""
        if not isinstance(workflow, Workflow):
            raise _wrong("workflow", "a Workflow", workflow)
        with self._in_use():
            c = ffi.new("tl_workflow *", workflow._c[0])
            c.context = self._bind(workflow)
            former = [workflow._c.former[i] for i in range(workflow._c.former_count)]
            c.former = copied = ffi.new("tl_former_channel[]", former)
            given = [one for one in workflow._keep if isinstance(one, FormerChannel)]
            for one, its in zip(copied, given):
                one.context = self._bind(its)
            _must(lib.tl_workflow_register, self._workflows, c)

    def _bind(self, handling):
        self._bound.append(_Bound(self._client, handling.handlers))
        return self._bound[-1].handle

    def run(self, serial_no, cust_no, op_code, payload, **request):
        """One payment, from the ask to its answer; more of the request is that of tl_request.

        An answer of the server that was lost is asked for once more (tl_workflow_settle).
        """
        asked = _Request(serial_no=serial_no, cust_no=cust_no, op_code=op_code, payload=payload,
                         **request)
        c = ffi.new("tl_answer *", {"version": lib.TL_ANSWER_VERSION})
        with self._in_use():
            try:
                status, message = _ask(lib.tl_workflow_run, self._workflows, asked._c, c)
                if status == Status.UNKNOWN:
                    status, message = _ask(lib.tl_workflow_settle, self._workflows, c)
                return _outcome(c, status, message)
            finally:
                lib.tl_answer_clear(c)

    def look(self, serial_no, cust_no, op_code):
        """What became of a trade: its status, NOT_FOUND, or why that could not be read."""
        return self._trade(lib.tl_workflow_look, serial_no, cust_no, op_code)

    def await_(self, serial_no, cust_no, op_code, wait_ms):
        """The same, once it has ended, needs a person, or wait_ms are over."""
        return self._trade(lib.tl_workflow_await, serial_no, cust_no, op_code, wait_ms)

    def _trade(self, function, serial_no, cust_no, op_code, *wait_ms):
        asked = _Request(serial_no=serial_no, cust_no=cust_no, op_code=op_code)
        c = ffi.new("tl_trade *", {"version": lib.TL_TRADE_VERSION, "proof": lib.TL_PROOF_NONE})
        with self._in_use():
            status, message = _ask(function, self._workflows, ffi.addressof(asked._c, "key"),
                                   *wait_ms, c)
        return _outcome(c, status, message)

    def trades(self, *, cust_no=None, batch=None, op_code=None):
        """Each trade of a customer, or of a batch, or of both, page by page."""
        after = ffi.new("char[]", lib.TL_TRADES_NEXT)
        while True:
            page = []
            handle = ffi.new_handle(page)
            which = _Trades(cust_no=cust_no, batch=batch, op_code=op_code, after=_text(after))
            with self._in_use():
                _must(lib.tl_workflow_list, self._workflows, which._c, lib.tradelock_trade, handle,
                      after)
            yield from page
            if not _text(after):
                return

    def batch(self, batch):
        """Counts a batch: trades, succeeded, failed, open, complete, and `sums` by currency."""
        total = ffi.new("tl_batch_total *", {"version": lib.TL_BATCH_TOTAL_VERSION})
        sums = []
        handle = ffi.new_handle(sums)
        with self._in_use():
            status, message = _ask(lib.tl_workflow_batch, self._workflows, _chars("batch", batch),
                                   total, lib.tradelock_sum, handle)
        return Record(**vars(_record(total)), status=status, message=message, sums=sums)

    def evidence(self, serial_no, cust_no, op_code):
        """All evidence of a trade, oldest first."""
        rows, asked = [], _Request(serial_no=serial_no, cust_no=cust_no, op_code=op_code)
        handle = ffi.new_handle(rows)
        with self._in_use():
            _must(lib.tl_evidence_list, self._client, ffi.addressof(asked._c, "key"),
                  lib.tradelock_evidence, handle)
        return rows

    def file_evidence(self, serial_no, cust_no, op_code, outcome, *, amount_minor=None,
                      currency=None, **evidence):
        """Files what a web-hook or a statement says; more of it is that of tl_evidence.

        OK; IN_CONFLICT: it is filed, and contradicts the trade; NOT_FOUND: nothing is filed.
        """
        amount = _Amount(is_told=amount_minor is not None, amount_minor=amount_minor,
                         currency=currency)
        filed = _Evidence(serial_no=serial_no, cust_no=cust_no, op_code=op_code, outcome=outcome,
                          amount=amount, **evidence)
        with self._in_use():
            status, message = _ask(lib.tl_evidence_add, self._client, filed._c)
        if status not in (Status.OK, Status.IN_CONFLICT, Status.NOT_FOUND):
            raise Error(status, message)
        return status

    def worker(self, **options):
        """Threads of this process that end what could not be decided; options: threads, ..."""
        return Worker(self, **options)


def _outcome(c, status, message):
    outcome = _record(c, Outcome)
    outcome.status, outcome.message = status, message
    return outcome


class Worker(_Closing):
    """The retry lane.  close() waits until it has finished what it holds."""

    def __init__(self, client, **options):
        super().__init__()
        made = ffi.new("tl_worker **")
        with client._in_use():
            try:
                _must(lib.tl_worker_start, made, client._workflows, _WorkerOptions(**options)._c)
            except BaseException:
                lib.tl_worker_free(made[0])
                raise
            self._worker, self._client = made[0], client
            client._workers.add(self)

    def check(self):
        """Whether it works: a Record with status and message."""
        with self._in_use():
            status, message = _ask(lib.tl_worker_check, self._worker)
        return Record(status=status, message=message)

    def counts(self):
        """Its counters, since its start."""
        counts = ffi.new("tl_worker_counts *", {"version": lib.TL_WORKER_COUNTS_VERSION})
        with self._in_use():
            _must(lib.tl_worker_count, self._worker, counts)
        return _record(counts)

    def close(self):
        if self._closing():
            lib.tl_worker_free(self._worker)
            self._client._workers.discard(self)


@atexit.register
def _close_all():
    """The library's threads call nobody in an interpreter that ends."""
    for client in list(_open):
        with contextlib.suppress(Error):
            client.close()
