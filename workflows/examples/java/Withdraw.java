import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Pays one withdrawal exactly once: Withdraw CONFIG BANK SERIAL CUST AMOUNT_MINOR.
 *
 * <p>The bank is an address such as http://127.0.0.1:8099; the tables are those of the tutorial.
 */
final class Withdraw {
    private static final int OK = Native.constant("TL_OK"), UNKNOWN = Native.constant("TL_UNKNOWN"),
            MISMATCH = Native.constant("TL_MISMATCH"),
            CALLBACK_FAILED = Native.constant("TL_CALLBACK_FAILED");
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
            return OK;
        } catch (Throwable e) {
            return CALLBACK_FAILED;
        }
    }

    static int prepare(MemorySegment context, MemorySegment attempt, MemorySegment reply,
            MemorySegment book) {
        return lines(book, "take money");
    }

    static int success(MemorySegment context, MemorySegment attempt, MemorySegment reply,
            MemorySegment book) {
        try {
            // After a failure that was booked, two operators found that it was paid.
            return new Struct("tl_attempt", attempt).number("after_failure") != 0
                    ? lines(book, "take again", "insert ledger") : lines(book, "insert ledger");
        } catch (Throwable e) {
            return CALLBACK_FAILED;
        }
    }

    static int failure(MemorySegment context, MemorySegment attempt, MemorySegment reply, int proof,
            MemorySegment book) {
        return lines(book, "give back");
    }

    private static void register(MemorySegment workflows) throws Throwable {
        try (Struct made = Struct.make("tl_workflow")) {
            made.set("op_code", "WITHDRAW").set("channel.name", "java-bank")
                    .set("channel.idempotent", 1).set("channel.replays_first_answer", 1)
                    .set("channel.can_query", 1)
                    .set("execute", Native.handler(Bank.class, "execute"))
                    .set("query", Native.handler(Bank.class, "query"))
                    .set("book_prepare", Native.handler(Withdraw.class, "prepare", ADDRESS))
                    .set("book_success", Native.handler(Withdraw.class, "success", ADDRESS))
                    .set("book_failure",
                            Native.handler(Withdraw.class, "failure", JAVA_INT, ADDRESS));
            for (int i = 0; i < STATEMENTS.length; i++) {
                String at = "statements." + i;
                made.set(at + ".name", STATEMENTS[i][0]).set(at + ".sql", STATEMENTS[i][1]);
                if (STATEMENTS[i][2] != null) {
                    made.set(at + ".refused", STATEMENTS[i][2]);
                }
            }
            Native.must((int) Native.REGISTER.invokeExact(workflows, made.at()));
        }
    }

    /** Prints an answer, and returns its exit code: 0 paid, 1 not paid, 2 neither is known. */
    private static int tell(String call, int status, Struct answer, String reference)
            throws Throwable {
        // Of this thread's last call, so it comes first.
        String message = ((MemorySegment) Native.MESSAGE.invokeExact()).getString(0);
        boolean paid = (int) Native.PAID.invokeExact(status) != 0;
        boolean notPaid = (int) Native.NOT_PAID.invokeExact(status) != 0;
        String name = ((MemorySegment) Native.NAME.invokeExact(status)).getString(0);
        String word = paid ? "paid" : notPaid ? "not paid" : "ask again";
        System.out.println(call + ": " + name + ", " + word + " " + answer.text(reference) + " "
                + message);
        return paid ? 0 : notPaid ? 1 : 2;
    }

    private static int pay(MemorySegment workflows, String[] of) throws Throwable {
        long amount = Long.parseLong(of[4]);
        try (Struct request = Struct.make("tl_request"); Struct answer = Struct.make("tl_answer");
                Struct trade = Struct.make("tl_trade")) {
            request.set("key.serial_no", of[2]).set("key.cust_no", of[3])
                    .set("key.op_code", "WITHDRAW").set("payload", "{\"amount_minor\":" + amount
                            + ",\"currency\":\"EUR\",\"payee\":\"Anna\"}")
                    .set("amount_minor", amount).set("currency", "EUR");
            int status = (int) Native.RUN.invokeExact(workflows, request.at(), answer.at());
            if (status == UNKNOWN) { // an answer of the server was lost
                status = (int) Native.SETTLE.invokeExact(workflows, answer.at());
            }
            int code = tell("run", status, answer, "view.channel_ref");
            MemorySegment key = request.bytes("key");
            // The retry lane finds out what is open; a mismatch is about the key's other payment.
            if (code == 2 && status != MISMATCH) {
                status = (int) Native.AWAIT.invokeExact(workflows, key, 60_000L, trade.at());
                code = tell("await", status, trade, "channel_ref");
            } else if (code == 0) {
                status = (int) Native.LOOK.invokeExact(workflows, key, trade.at());
                tell("look", status, trade, "channel_ref");
            }
            return code;
        }
    }

    public static void main(String[] arguments) throws Throwable {
        if (arguments.length != 5) {
            System.err.println("usage: Withdraw CONFIG BANK SERIAL CUST AMOUNT_MINOR");
            System.exit(2);
        }
        MemorySegment client = MemorySegment.NULL, workflows = client, worker = client;
        int code = 2;
        Bank.address = arguments[1];
        try (Arena memory = Arena.ofConfined(); Struct options = Struct.make("tl_client_options");
                Struct threads = Struct.make("tl_worker_options")) {
            MemorySegment out = memory.allocate(ADDRESS);
            options.set("config_file", arguments[0]).set("program", "Withdraw");
            Native.must((int) Native.OPEN.invokeExact(out, options.at()));
            client = out.get(ADDRESS, 0);
            Native.must((int) Native.NEW.invokeExact(out, client));
            workflows = out.get(ADDRESS, 0);
            register(workflows);
            // The threads of the retry lane; tradelock-worker is the same in a process of its own.
            Native.must((int) Native.WORKER_START.invokeExact(out, workflows, threads.at()));
            worker = out.get(ADDRESS, 0);
            code = pay(workflows, arguments);
        } finally {
            Native.WORKER_FREE.invokeExact(worker);
            Native.FREE.invokeExact(workflows);
            Native.CLOSE.invokeExact(client);
        }
        System.exit(code);
    }
}
