import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;

/**
 * Pays one withdrawal exactly once: Withdraw CONFIG BANK SERIAL CUST AMOUNT_MINOR.
 *
 * <p>The bank is an address such as http://127.0.0.1:8099; the tables are those of the tutorial.
 */
final class Withdraw {
    private static final String TAKE = "UPDATE account"
            + " SET balance_minor = balance_minor - :amount_minor WHERE cust_no = :cust_no";
    /** The business rows: name, statement, and what the caller hears where it changes none. */
    private static final String[][] STATEMENTS = {
        {"take money", TAKE + " AND balance_minor >= :amount_minor", "too little money"},
        {"give back", TAKE.replace("- :", "+ :"), null},
        {"take again", TAKE, null},
        {"insert ledger", "INSERT INTO ledger (serial_no, cust_no, amount_minor, channel_ref)"
            + " VALUES (:serial_no, :cust_no, :amount_minor, :channel_ref)", null}};

    private static int lines(MemorySegment book, String... names) {
        try (Arena memory = Arena.ofConfined()) {
            for (String name : names) {
                Native.LINE.invokeExact(book, Native.text(memory, name));
            }
            return Layout.TL_OK;
        } catch (Throwable e) {
            return Layout.TL_CALLBACK_FAILED;
        }
    }

    static int prepare(MemorySegment context, MemorySegment attempt, MemorySegment reply,
            MemorySegment book) {
        return lines(book, "take money");
    }

    static int success(MemorySegment context, MemorySegment attempt, MemorySegment reply,
            MemorySegment book) {
        // After a failure that was booked, two operators found that it was paid.
        return attempt.get(JAVA_INT, Layout.tl_attempt_after_failure) != 0
                ? lines(book, "take again", "insert ledger") : lines(book, "insert ledger");
    }

    static int failure(MemorySegment context, MemorySegment attempt, MemorySegment reply, int proof,
            MemorySegment book) {
        return lines(book, "give back");
    }

    private static MemorySegment workflow(Arena memory) throws ReflectiveOperationException {
        MemorySegment made = Native.struct(memory, Layout.tl_workflow, Layout.TL_WORKFLOW_VERSION);
        MemorySegment statements = memory.allocate(Layout.tl_statement * STATEMENTS.length, 8);
        long at = 0;
        for (String[] one : STATEMENTS) {
            Native.put(memory, statements, at + Layout.tl_statement_name, one[0]);
            Native.put(memory, statements, at + Layout.tl_statement_sql, one[1]);
            if (one[2] != null) {
                Native.put(memory, statements, at + Layout.tl_statement_refused, one[2]);
            }
            at += Layout.tl_statement;
        }
        Native.put(memory, made, Layout.tl_workflow_op_code, "WITHDRAW");
        Native.put(memory, made, Layout.tl_workflow_channel_name, "java-bank");
        made.set(JAVA_INT, Layout.tl_workflow_channel_idempotent, 1);
        made.set(JAVA_INT, Layout.tl_workflow_channel_replays_first_answer, 1);
        made.set(JAVA_INT, Layout.tl_workflow_channel_can_query, 1);
        made.set(ADDRESS, Layout.tl_workflow_statements, statements);
        made.set(JAVA_LONG, Layout.tl_workflow_statement_count, STATEMENTS.length);
        made.set(ADDRESS, Layout.tl_workflow_execute, Native.handler(Bank.class, "execute"));
        made.set(ADDRESS, Layout.tl_workflow_query, Native.handler(Bank.class, "query"));
        made.set(ADDRESS, Layout.tl_workflow_book_prepare,
                Native.handler(Withdraw.class, "prepare", ADDRESS));
        made.set(ADDRESS, Layout.tl_workflow_book_success,
                Native.handler(Withdraw.class, "success", ADDRESS));
        made.set(ADDRESS, Layout.tl_workflow_book_failure,
                Native.handler(Withdraw.class, "failure", JAVA_INT, ADDRESS));
        return made;
    }

    /** Prints an answer, and returns its exit code: 0 paid, 1 not paid, 2 neither is known. */
    private static int tell(String call, int status, MemorySegment reference) throws Throwable {
        // Of this thread's last call, so it comes first.
        String message = ((MemorySegment) Native.MESSAGE.invokeExact()).getString(0);
        boolean paid = (int) Native.PAID.invokeExact(status) != 0;
        boolean notPaid = (int) Native.NOT_PAID.invokeExact(status) != 0;
        String name = ((MemorySegment) Native.NAME.invokeExact(status)).getString(0);
        String word = paid ? "paid" : notPaid ? "not paid" : "ask again";
        System.out.println(
                call + ": " + name + ", " + word + " " + reference.getString(0) + " " + message);
        return paid ? 0 : notPaid ? 1 : 2;
    }

    private static void must(int status) throws Throwable {
        if (status != Layout.TL_OK) {
            MemorySegment message = (MemorySegment) Native.MESSAGE.invokeExact();
            throw new IllegalStateException(message.getString(0));
        }
    }

    private static int pay(Arena memory, MemorySegment workflows, String[] of) throws Throwable {
        MemorySegment request = Native.struct(memory, Layout.tl_request, Layout.TL_REQUEST_VERSION);
        MemorySegment key = request.asSlice(Layout.tl_request_key);
        byte[] order = ("{\"amount_minor\":" + Long.parseLong(of[4])
                + ",\"currency\":\"EUR\",\"payee\":\"Anna\"}").getBytes(StandardCharsets.UTF_8);
        Native.put(memory, request, Layout.tl_request_key_serial_no, of[2]);
        Native.put(memory, request, Layout.tl_request_key_cust_no, of[3]);
        Native.put(memory, request, Layout.tl_request_key_op_code, "WITHDRAW");
        request.set(ADDRESS, Layout.tl_request_payload, memory.allocateFrom(JAVA_BYTE, order));
        request.set(JAVA_LONG, Layout.tl_request_payload_size, order.length);
        request.set(JAVA_LONG, Layout.tl_request_amount_minor, Long.parseLong(of[4]));
        Native.put(memory, request, Layout.tl_request_currency, "EUR");

        MemorySegment answer = Native.struct(memory, Layout.tl_answer, Layout.TL_ANSWER_VERSION);
        answer.set(JAVA_INT, Layout.tl_answer_proof, Layout.TL_PROOF_NONE);
        int status = (int) Native.RUN.invokeExact(workflows, request, answer);
        if (status == Layout.TL_UNKNOWN) { // an answer of the server was lost
            status = (int) Native.SETTLE.invokeExact(workflows, answer);
        }
        int code = tell("run", status, answer.asSlice(Layout.tl_answer_channel_ref));
        Native.CLEAR.invokeExact(answer);

        MemorySegment trade = Native.struct(memory, Layout.tl_trade, Layout.TL_TRADE_VERSION);
        trade.set(JAVA_INT, Layout.tl_trade_proof, Layout.TL_PROOF_NONE);
        MemorySegment reference = trade.asSlice(Layout.tl_trade_channel_ref);
        // The retry lane finds out what is open; a mismatch is about the key's other payment.
        if (code == 2 && status != Layout.TL_MISMATCH) {
            status = (int) Native.AWAIT.invokeExact(workflows, key, 60_000L, trade);
            code = tell("await", status, reference);
        } else if (code == 0) {
            status = (int) Native.LOOK.invokeExact(workflows, key, trade);
            tell("look", status, reference);
        }
        return code;
    }

    public static void main(String[] arguments) throws Throwable {
        if (arguments.length != 5) {
            System.err.println("usage: Withdraw CONFIG BANK SERIAL CUST AMOUNT_MINOR");
            System.exit(2);
        }
        MemorySegment client = MemorySegment.NULL, workflows = client, worker = client;
        int code = 2;
        try (Arena memory = Arena.ofConfined()) {
            MemorySegment out = memory.allocate(ADDRESS);
            MemorySegment options = Native.struct(memory, Layout.tl_client_options,
                    Layout.TL_CLIENT_OPTIONS_VERSION);
            Bank.address = arguments[1];
            Native.put(memory, options, Layout.tl_client_options_config_file, arguments[0]);
            Native.put(memory, options, Layout.tl_client_options_program, "Withdraw");
            must((int) Native.OPEN.invokeExact(out, options));
            client = out.get(ADDRESS, 0);
            must((int) Native.NEW.invokeExact(out, client));
            workflows = out.get(ADDRESS, 0);
            must((int) Native.REGISTER.invokeExact(workflows, workflow(memory)));
            // The threads of the retry lane; tradelock-worker is the same in a process of its own.
            must((int) Native.WORKER_START.invokeExact(out, workflows, Native.struct(memory,
                    Layout.tl_worker_options, Layout.TL_WORKER_OPTIONS_VERSION)));
            worker = out.get(ADDRESS, 0);
            code = pay(memory, workflows, arguments);
        } finally {
            Native.WORKER_FREE.invokeExact(worker);
            Native.FREE.invokeExact(workflows);
            Native.CLOSE.invokeExact(client);
        }
        System.exit(code);
    }
}
