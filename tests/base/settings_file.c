#include "settings_file.h"

#include "base/error.h"
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

char settings_folder[] = "/tmp/tradelock-config-XXXXXX";
char settings_path[sizeof(settings_folder) + 20];

int settings_make_folder(void **state)
{
    (void)state;
    if (mkdtemp(settings_folder) == NULL)
        return -1;
    snprintf(settings_path, sizeof(settings_path), "%s/a.cnf", settings_folder);
    return 0;
}

int settings_remove_folder(void **state)
{
    (void)state;
    unlink(settings_path);
    return rmdir(settings_folder);
}

void settings_write(const char *text, size_t size, mode_t mode)
{
    FILE *file;

    unlink(settings_path);
    file = fopen(settings_path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(settings_path, mode), 0);
}

tl_status settings_load(const char *text, struct config *config)
{
    settings_write(text, strlen(text), 0600);
    error_clear();
    return config_load(config, settings_path);
}

void assert_loads(const char *text, struct config *config)
{
    tl_status status = settings_load(text, config);

    assert_string_equal(tl_error_message(), "");
    assert_int_equal(status, TL_OK);
}

void assert_refused(const char *text, const char *rest)
{
    struct config config, before;
    char wanted[1200];

    memset(&config, 0x5a, sizeof(config));
    before = config;
    snprintf(wanted, sizeof(wanted), "%s%s", settings_path, rest);
    assert_problem(settings_load(text, &config), TL_BAD_CONFIG, wanted);
    assert_memory_equal(&config, &before, sizeof(config));
}
