/*
 * What the environment says of a connection, as lines of an option file: TRADELOCK_HOST and the like,
 * and the password out of the file that TRADELOCK_PASSWORD_FILE names.  Touches that file.
 *
 * There is no TRADELOCK_PORT: where a service of a cluster is called "tradelock", Kubernetes sets it,
 * to something else.  A host has its port in its name.
 */
#include "base/config_client.h"

#include "base/config.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#define VALUE_MAX 1024

static const char *const names[] = {"host", "user", "database", "ssl-ca", "ssl-cert", "ssl-key"};

#define NAMES (sizeof names / sizeof names[0])

int config_connection_is_set(void)
{
    for (size_t i = 0; i < NAMES; i++)
        if (config_variable(names[i]) != NULL)
            return 1;
    return config_variable("password") != NULL || config_variable("password-file") != NULL;
}

/* `what` it is, for the sentence, which never quotes it. */
static tl_status write_line(FILE *to, const char *name, const char *what, const char *value,
                            size_t size)
{
    if (size == 0 || size > VALUE_MAX)
        return error_set(TL_BAD_CONFIG, "%s: it is of 1 to %d bytes", what, VALUE_MAX);
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)value[i] < ' ')
            return error_set(TL_BAD_CONFIG, "%s: it is more than one line", what);
    fprintf(to, "%s = \"", name);
    for (; *value != '\0'; value++) {
        if (*value == '\\')
            fputc('\\', to); /* libmariadb takes one off */
        fputc(*value, to);
    }
    fputs("\"\n", to);
    return TL_OK;
}

/* The end of its line, which editors write, is not the password's. */
static tl_status write_password(FILE *to, const char *path)
{
    char value[VALUE_MAX + 4];
    struct config_file file;
    size_t size;
    tl_status status = config_file_open(&file, "TRADELOCK_PASSWORD_FILE", path);

    if (status != TL_OK)
        return status;
    size = fread(value, 1, sizeof value - 1, file.stream);
    size -= size > 0 && value[size - 1] == '\n';
    size -= size > 0 && value[size - 1] == '\r';
    value[size] = '\0';
    if (!file.is_private)
        status = error_set(TL_BAD_CONFIG,
                           "%s: others than its owner can read or write it (mode %04o); "
                           "chmod 600 it",
                           path, (unsigned)(file.mode & 07777));
    else
        status = write_line(to, "password", path, value, size);
    explicit_bzero(value, sizeof value);
    fclose(file.stream);
    return status;
}

tl_status config_connection_write(FILE *to)
{
    const char *password_file = config_variable("password-file");
    tl_status status = TL_OK;

    for (size_t i = 0; i < NAMES && status == TL_OK; i++) {
        const char *value = config_variable(names[i]);

        if (value != NULL)
            status = write_line(to, names[i], names[i], value, strlen(value));
    }
    if (status != TL_OK)
        return error_prefix(status, "%s", config_file_name(""));
    if (config_variable("password") != NULL)
        return error_set(
            TL_BAD_CONFIG,
            "TRADELOCK_PASSWORD: others can see an environment; put the password into a "
            "file, and name that in TRADELOCK_PASSWORD_FILE");
    return password_file != NULL ? write_password(to, password_file) : TL_OK;
}
