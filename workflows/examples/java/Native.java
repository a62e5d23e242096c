import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.AddressLayout;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;

/** The library's calls, and what Java needs to make them: JDK 22 or newer. */
final class Native {
    /** A pointer to a text. */
    private static final AddressLayout TEXT =
            ADDRESS.withTargetLayout(MemoryLayout.sequenceLayout(Long.MAX_VALUE, JAVA_BYTE));
    private static final Linker LINKER = Linker.nativeLinker();
    private static final SymbolLookup LIBRARY =
            SymbolLookup.libraryLookup("libtradelock-workflow.so.1", Arena.global());

    static final MethodHandle
            OPEN = call("tl_client_open", JAVA_INT, ADDRESS, ADDRESS),
            CLOSE = call("tl_client_close", null, ADDRESS),
            NEW = call("tl_workflows_new", JAVA_INT, ADDRESS, ADDRESS),
            FREE = call("tl_workflows_free", null, ADDRESS),
            REGISTER = call("tl_workflow_register", JAVA_INT, ADDRESS, ADDRESS),
            RUN = call("tl_workflow_run", JAVA_INT, ADDRESS, ADDRESS, ADDRESS),
            SETTLE = call("tl_workflow_settle", JAVA_INT, ADDRESS, ADDRESS),
            LOOK = call("tl_workflow_look", JAVA_INT, ADDRESS, ADDRESS, ADDRESS),
            AWAIT = call("tl_workflow_await", JAVA_INT, ADDRESS, ADDRESS, JAVA_LONG, ADDRESS),
            WORKER_START = call("tl_worker_start", JAVA_INT, ADDRESS, ADDRESS, ADDRESS),
            WORKER_FREE = call("tl_worker_free", null, ADDRESS),
            PAID = call("tl_paid", JAVA_INT, JAVA_INT),
            NOT_PAID = call("tl_not_paid", JAVA_INT, JAVA_INT),
            NAME = call("tl_status_name", TEXT, JAVA_INT),
            MESSAGE = call("tl_error_message", TEXT),
            LEFT_MS = call("tl_attempt_left_ms", JAVA_LONG, ADDRESS),
            REPLY_REF = call("tl_reply_ref", JAVA_INT, ADDRESS, ADDRESS),
            LINE = call("tl_book_line", null, ADDRESS, ADDRESS),
            STRUCT_NEW = call("tl_struct_new", JAVA_INT, ADDRESS, ADDRESS),
            STRUCT_FREE = call("tl_struct_free", null, ADDRESS),
            STRUCT_SET_NUMBER = call("tl_struct_set_number", JAVA_INT, ADDRESS, ADDRESS, JAVA_LONG),
            STRUCT_SET_BYTES =
                    call("tl_struct_set_bytes", JAVA_INT, ADDRESS, ADDRESS, ADDRESS, JAVA_LONG),
            STRUCT_SET_POINTER =
                    call("tl_struct_set_pointer", JAVA_INT, ADDRESS, ADDRESS, ADDRESS),
            STRUCT_NUMBER =
                    call("tl_struct_number", JAVA_INT, ADDRESS, ADDRESS, ADDRESS, ADDRESS),
            STRUCT_BYTES =
                    call("tl_struct_bytes", JAVA_INT, ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS),
            CONSTANT = call("tl_constant", JAVA_INT, ADDRESS, ADDRESS);

    private static MethodHandle call(String name, MemoryLayout result, MemoryLayout... arguments) {
        FunctionDescriptor form = result == null ? FunctionDescriptor.ofVoid(arguments)
                : FunctionDescriptor.of(result, arguments);
        return LINKER.downcallHandle(LIBRARY.find(name).orElseThrow(), form);
    }

    /** A static method, as a handler: its context, attempt and reply, and what else it takes. */
    static MemorySegment handler(Class<?> of, String method, MemoryLayout... more)
            throws ReflectiveOperationException {
        FunctionDescriptor form = FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, ADDRESS)
                .appendArgumentLayouts(more);
        MethodHandle handle = MethodHandles.lookup().findStatic(of, method, form.toMethodType());
        return LINKER.upcallStub(handle, form, Arena.global());
    }

    /** Throws the sentence of a call that must answer TL_OK, which is 0. */
    static void must(int status) throws Throwable {
        if (status != 0) {
            throw new IllegalStateException(((MemorySegment) MESSAGE.invokeExact()).getString(0));
        }
    }

    /** The number of a status, or of a handler's answer. */
    static int constant(String name) {
        try (Arena memory = Arena.ofConfined()) {
            MemorySegment out = memory.allocate(JAVA_LONG);
            must((int) CONSTANT.invokeExact(memory.allocateFrom(name), out));
            return (int) out.get(JAVA_LONG, 0);
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    static MemorySegment text(Arena memory, String text) {
        if (text.indexOf(0) >= 0) { // it would be cut there, and mean something else
            throw new IllegalArgumentException("a text has a NUL inside");
        }
        return memory.allocateFrom(text);
    }
}
