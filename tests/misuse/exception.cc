// What C cannot do: an exception that passes through the library, and somebody who catches it.
extern "C" void exception_throw(void);
extern "C" int exception_catch(void (*fn)(void *), void *context);

void exception_throw(void)
{
    throw 1;
}

int exception_catch(void (*fn)(void *), void *context)
{
    try {
        fn(context);
    } catch (int) {
        return 1;
    }
    return 0;
}
