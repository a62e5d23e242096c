"""What of libtradelock this example calls, by ctypes: look at a trade, and file evidence.

Nothing but Python's own library is needed.  The structs are those of <tradelock/tradelock.h>; a
test compares their layouts.  A client may be used by many threads, but not after a fork.
"""

import ctypes
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_char, c_char_p, c_int, c_int64, c_uint,
                    c_uint32, c_uint64, c_void_p)

OK, NOT_FOUND, IN_CONFLICT = 0, 78, 29
UNKNOWN_CLASS, RETRY_CLASS = 3, 2
_NO_SESSION = 1
_LANE_SYNC = 0


class Key(Structure):
    _fields_ = [("serial_no", c_char_p), ("cust_no", c_char_p), ("op_code", c_char_p)]


class ClientOptions(Structure):
    version_wanted = 1
    _fields_ = [("version", c_uint), ("flags", c_uint), ("config_file", c_char_p),
                ("program", c_char_p), ("operations", c_char_p), ("group_suffix", c_char_p),
                ("database", c_char_p), ("log", c_void_p), ("log_context", c_void_p),
                ("loss", c_void_p), ("loss_context", c_void_p), ("user", c_char_p),
                ("password", c_char_p), ("shard", c_char_p)]


class View(Structure):
    """The beginning of a tl_view: the library makes it, so what follows need not be known."""
    _fields_ = [("version", c_uint), ("state", c_int), ("lane", c_char), ("status", c_char),
                ("serial_no", c_char * 65), ("cust_no", c_char * 33), ("op_code", c_char * 33),
                ("fence", c_uint64), ("rev", c_uint64), ("epoch", c_uint32), ("sends", c_uint32),
                ("attempts", c_uint32), ("claims", c_uint32)]


class Amount(Structure):
    _fields_ = [("is_told", c_int), ("amount_minor", c_int64), ("currency", c_char_p)]


class Evidence(Structure):
    version_wanted = 1
    _fields_ = [("version", c_uint), ("key", Key), ("epoch", c_uint32), ("channel_key", c_char_p),
                ("outcome", c_char_p), ("final", c_int), ("channel_ref", c_char_p),
                ("source", c_char_p), ("remark", c_char_p), ("amount", Amount)]


class EvidenceRow(Structure):
    _fields_ = [("evidence_id", c_uint64), ("epoch", c_uint32), ("channel_key", c_char_p),
                ("outcome", c_char_p), ("channel_ref", c_char_p), ("source", c_char_p),
                ("remark", c_char_p), ("account", c_char_p), ("final", c_int),
                ("filed_us", c_int64), ("amount", Amount), ("contradicts", c_int)]


_VIEW_FN = CFUNCTYPE(c_int, c_void_p, POINTER(View))
_EVIDENCE_FN = CFUNCTYPE(c_int, c_void_p, POINTER(EvidenceRow))

_library = ctypes.CDLL("libtradelock.so.1")
for _name, _result, _arguments in [
        ("tl_client_open", c_int, [POINTER(c_void_p), POINTER(ClientOptions)]),
        ("tl_client_close", None, [c_void_p]),
        ("tl_show", c_int, [c_void_p, POINTER(Key), c_int, _VIEW_FN, c_void_p]),
        ("tl_evidence_add", c_int, [c_void_p, POINTER(Evidence)]),
        ("tl_evidence_list", c_int, [c_void_p, POINTER(Key), _EVIDENCE_FN, c_void_p]),
        ("tl_state_name", c_char_p, [c_int]),
        ("tl_status_name", c_char_p, [c_int]),
        ("tl_status_class", c_int, [c_int]),
        ("tl_error_message", c_char_p, [])]:
    _function = getattr(_library, _name)
    _function.restype, _function.argtypes = _result, _arguments


class Error(Exception):
    """A status that is not TL_OK, with the library's sentence."""

    def __init__(self, status):
        # The message is the calling thread's: it is taken before any other call.
        message = _library.tl_error_message().decode("utf-8", "replace")
        super().__init__(f"{_library.tl_status_name(status).decode()}: {message}")
        self.status = status

    @property
    def later(self):
        """Whether the same call may be made again: nothing happened, or it is not known."""
        return _library.tl_status_class(self.status) in (RETRY_CLASS, UNKNOWN_CLASS)


def _check(status, *fine):
    if status != OK and status not in fine:
        raise Error(status)
    return status


def _text(value):
    """As the library takes it: what has a NUL inside would be cut, and mean something else."""
    if value is None:
        return None
    if "\0" in value:
        raise ValueError("a NUL inside a text")
    return value.encode("utf-8")


def _key(key):
    return Key(*(_text(part) for part in key))


class Client:
    """A client without a session: it looks and files, and asks for no locks."""

    def __init__(self, config_file, program="webhook"):
        options = ClientOptions(version=ClientOptions.version_wanted, flags=_NO_SESSION,
                                config_file=_text(config_file), program=_text(program))
        self._client = c_void_p()
        _check(_library.tl_client_open(byref(self._client), byref(options)))

    def close(self):
        _library.tl_client_close(self._client)
        self._client = c_void_p()

    def look(self, key):
        """State, status (P, F or Y), epoch and sends of (serial_no, cust_no, op_code); or None."""
        found = {}

        # A callback copies what it is given, and never raises: nobody could hear it.
        def take(_context, view):
            seen = view.contents
            found.update(state=_library.tl_state_name(seen.state).decode(),
                         status=seen.status.decode(), epoch=seen.epoch, sends=seen.sends)
            return 0

        status = _library.tl_show(self._client, byref(_key(key)), _LANE_SYNC, _VIEW_FN(take), None)
        return found if _check(status, NOT_FOUND) == OK else None

    def evidence(self, key):
        """All evidence of a trade, oldest first."""
        rows = []

        def take(_context, row):
            seen = row.contents
            rows.append({"outcome": (seen.outcome or b"").decode("utf-8", "replace"),
                         "remark": (seen.remark or b"").decode("utf-8", "replace"),
                         "source": (seen.source or b"").decode("utf-8", "replace")})
            return 0

        _check(_library.tl_evidence_list(self._client, byref(_key(key)), _EVIDENCE_FN(take), None))
        return rows

    def file(self, key, outcome, *, channel_key, channel_ref, final, source, remark,
             amount_minor=None, currency=None):
        """Files evidence.  True; False when there is no such trade, and nothing was filed."""
        evidence = Evidence(version=Evidence.version_wanted, key=_key(key),
                            channel_key=_text(channel_key), outcome=_text(outcome),
                            final=1 if final else 0, channel_ref=_text(channel_ref),
                            source=_text(source), remark=_text(remark),
                            amount=Amount(amount_minor is not None, amount_minor or 0,
                                          _text(currency)))
        # A contradiction is filed as well; operators see it.
        return _check(_library.tl_evidence_add(self._client, byref(evidence)), NOT_FOUND,
                      IN_CONFLICT) != NOT_FOUND
