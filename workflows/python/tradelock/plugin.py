"""The plug-in's other half: loads the module that the settings name, and lets it register.

Whoever can write that file can pay, and so can who writes what it imports from its own folder: all
of these, and the folders above, belong to root or to this account, and nobody else may write them.
"""
import configparser
import importlib
import importlib.machinery
import os
import sys

from . import Client, Error, Status, _chars, _must, _sentence, _text, ffi, lib

SECTION = "service-python"


def settings(config_file, section=SECTION):
    """What stands in a service's own section of the settings file."""
    # Sections of others are passed over, whatever stands in them.
    parser = configparser.RawConfigParser(
        strict=False, allow_no_value=True, delimiters=("=",), inline_comment_prefixes=(";",),
        default_section="\n")
    parser.optionxform = str
    try:
        with open(config_file, encoding="utf-8") as file:
            parser.read_file(file)
        return dict(parser[section])
    except (OSError, UnicodeError, configparser.Error, KeyError) as error:
        raise Error(Status.BAD_CONFIG, f"{config_file}: [{section}]: {error}") from None


def _resolved(path):
    """The path to open, if nobody else can write the file."""
    resolved = ffi.new("char[]", lib.TL_PATH)
    _must(lib.tl_writers_check, _chars("path", path), resolved)
    return _text(resolved)


class _Loader(importlib.machinery.SourceFileLoader):
    """Runs the source alone, after the look at who can write it."""

    def get_code(self, fullname):
        path = _resolved(self.get_filename(fullname))
        return self.source_to_code(self.get_data(path), path)


_guarded = set()


def _guard(folder):
    """What is imported from below the folder is looked at first."""
    _guarded.add(folder)

    def hook(path):
        if os.path.commonpath((folder, os.path.abspath(path))) != folder:
            raise ImportError(path)
        return importlib.machinery.FileFinder(path, (_Loader, [".py"]))

    sys.path_hooks.insert(0, hook)
    sys.path_importer_cache.clear()
    sys.path.insert(0, folder)


def _module(path):
    path = _resolved(path)
    folder, name = os.path.split(path)
    if folder not in _guarded:
        _guard(folder)
    module = importlib.import_module(name.removesuffix(".py"))
    if getattr(module, "__file__", None) != path or not callable(getattr(module, "register", None)):
        raise Error(Status.BAD_CONFIG, f"{path} has no function register(client, settings), or the "
                    "name of a module of Python's own")
    return module


def open_module(client, workflows, config_file):
    """Called by the plug-in: a Client, or a status with its sentence."""
    client = Client._borrow(ffi.cast("tl_client *", client), ffi.cast("tl_workflows *", workflows))
    try:
        given = settings(config_file)
        if not given.get("module"):
            raise Error(Status.BAD_CONFIG, f"{config_file}: [{SECTION}] names no module")
        _module(given["module"]).register(client, given)
        return client
    except BaseException as error:
        client.close()
        status = error.status if isinstance(error, Error) else Status.CALLBACK_FAILED
        message = error.message if isinstance(error, Error) else f"{type(error).__name__}: {error}"
        return int(lib.tl_error_report(status, b"%s", _chars("error", message.replace("\0", " "))))
