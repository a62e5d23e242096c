import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;

/** A struct of the headers, by the names of its fields: made here, or given to a handler. */
record Struct(String type, MemorySegment at) implements AutoCloseable {
    static Struct make(String type) throws Throwable {
        try (Arena memory = Arena.ofConfined()) {
            MemorySegment out = memory.allocate(ADDRESS);
            Native.must((int) Native.STRUCT_NEW.invokeExact(out, memory.allocateFrom(type)));
            return new Struct(type, out.get(ADDRESS, 0));
        }
    }

    /** Sets a text, bytes, a number or a pointer. */
    Struct set(String field, Object value) throws Throwable {
        try (Arena memory = Arena.ofConfined()) {
            MemorySegment name = memory.allocateFrom(field);
            Native.must(switch (value) {
                case String text -> set(memory, name, text.getBytes(StandardCharsets.UTF_8));
                case byte[] bytes -> set(memory, name, bytes);
                case MemorySegment pointer ->
                    (int) Native.STRUCT_SET_POINTER.invokeExact(at, name, pointer);
                default -> (int) Native.STRUCT_SET_NUMBER.invokeExact(at, name,
                        ((Number) value).longValue());
            });
        }
        return this;
    }

    private int set(Arena memory, MemorySegment name, byte[] bytes) throws Throwable {
        return (int) Native.STRUCT_SET_BYTES.invokeExact(at, name,
                memory.allocateFrom(JAVA_BYTE, bytes), (long) bytes.length);
    }

    long number(String field) throws Throwable {
        try (Arena memory = Arena.ofConfined()) {
            MemorySegment out = memory.allocate(JAVA_LONG);
            Native.must((int) Native.STRUCT_NUMBER.invokeExact(memory.allocateFrom(type), at,
                    memory.allocateFrom(field), out));
            return out.get(JAVA_LONG, 0);
        }
    }

    /** Where the bytes of a field are; of a struct within this one, where that is. */
    MemorySegment bytes(String field) throws Throwable {
        try (Arena memory = Arena.ofConfined()) {
            MemorySegment out = memory.allocate(ADDRESS), size = memory.allocate(JAVA_LONG);
            Native.must((int) Native.STRUCT_BYTES.invokeExact(memory.allocateFrom(type), at,
                    memory.allocateFrom(field), out, size));
            return out.get(ADDRESS, 0).reinterpret(size.get(JAVA_LONG, 0));
        }
    }

    String text(String field) throws Throwable {
        return new String(bytes(field).toArray(JAVA_BYTE), StandardCharsets.UTF_8);
    }

    @Override
    public void close() {
        try {
            Native.STRUCT_FREE.invokeExact(at);
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }
}
