/*
 * A plug-in whose workflows are in Python: starts the interpreter, once, and has tradelock.plugin
 * load the module that [service-python] of the settings names.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <tradelock/plugin.h>

#include <dlfcn.h>
#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char problem[256];

/* A plug-in is loaded for itself alone, and so is its libpython, in which Python's own modules look
 * for what they call. */
static int show_symbols(void)
{
    Dl_info info;

    return dladdr((void *)(uintptr_t)&Py_IsInitialized, &info) != 0 &&
           dlopen(info.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD) != NULL;
}

/* Signals are the program's, and its standard output is written at once: nobody ends Python. */
static void start(void)
{
    PyConfig config;
    PyStatus status;

    if (!show_symbols()) {
        snprintf(problem, sizeof problem, "libpython: %s", dlerror());
        return;
    }
    PyConfig_InitPythonConfig(&config);
    config.install_signal_handlers = 0;
    config.parse_argv = 0;
    config.buffered_stdio = 0;
    config.user_site_directory = 0;
    status = PyConfig_SetBytesString(&config, &config.program_name, PYTHON_PROGRAM);
    if (!PyStatus_Exception(status))
        status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    if (PyStatus_Exception(status))
        snprintf(problem, sizeof problem, "%s: %s", PYTHON_PROGRAM,
                 status.err_msg != NULL ? status.err_msg : "it does not start");
    else
        PyEval_SaveThread();
}

static tl_status open_it(tl_client *client, tl_workflows *workflows, const char *config_file,
                         void **state)
{
    PyObject *module, *opened = NULL;
    PyGILState_STATE held;
    tl_status status = TL_OK;

    pthread_once(&once, start);
    if (problem[0] != '\0')
        return tl_error_report(TL_INTERNAL, "Python cannot be started: %s", problem);
    held = PyGILState_Ensure();
    module = PyImport_ImportModule("tradelock.plugin");
    if (module != NULL)
        opened =
            PyObject_CallMethod(module, "open_module", "KKs", (unsigned long long)(uintptr_t)client,
                                (unsigned long long)(uintptr_t)workflows, config_file);
    if (opened == NULL) {
        PyErr_Print();
        status = tl_error_report(TL_INTERNAL, "the package tradelock of Python cannot be used; "
                                              "standard error has why");
    } else if (PyLong_Check(opened)) {
        status = (tl_status)PyLong_AsLong(opened);
        Py_DECREF(opened);
    } else
        *state = opened;
    Py_XDECREF(module);
    PyGILState_Release(held);
    return status;
}

static void close_it(void *state)
{
    const PyGILState_STATE held = PyGILState_Ensure();

    Py_XDECREF(PyObject_CallMethod(state, "close", NULL));
    PyErr_Clear();
    Py_DECREF((PyObject *)state);
    PyGILState_Release(held);
}

const tl_plugin tradelock_plugin = {.version = TL_PLUGIN_VERSION,
                                    .size = sizeof(tl_plugin),
                                    .name = "python",
                                    .open = open_it,
                                    .close = close_it};
