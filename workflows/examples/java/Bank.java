import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The handlers that call the bank, for one that keeps keys for ever and can be asked. */
final class Bank {
    private enum Execute {
        UNKNOWN, SUCCEEDED, DECLINED, RETRY_LATER, NOT_SENT, ACCEPTED;

        final int number = Native.constant("TL_EXECUTE_" + name());
    }

    private enum Query {
        UNREACHABLE, SUCCEEDED, FAILED, PENDING, NOT_FOUND;

        final int number = Native.constant("TL_QUERY_" + name());
    }

    static String address; // such as http://127.0.0.1:8099
    private static final HttpClient HTTP = HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1).proxy(HttpClient.Builder.NO_PROXY)
            .followRedirects(HttpClient.Redirect.NEVER).build();

    /** One exchange; null: it was never connected, or no time is left, so no byte was sent. */
    private static HttpResponse<String> exchange(MemorySegment attempt, HttpRequest.Builder request)
            throws Throwable {
        long leftMs = (long) Native.LEFT_MS.invokeExact(attempt); // asked for last
        if (leftMs <= 0) {
            return null;
        }
        CompletableFuture<HttpResponse<String>> answer =
                HTTP.sendAsync(request.build(), HttpResponse.BodyHandlers.ofString());
        try {
            return answer.get(leftMs, TimeUnit.MILLISECONDS);
        } catch (ExecutionException e) {
            if (e.getCause() instanceof ConnectException) {
                return null;
            }
            throw e;
        } finally {
            answer.cancel(true);
        }
    }

    /** A text of the bank's flat objects; a service of your own has a library for JSON. */
    private static String said(HttpResponse<String> answer, String name) {
        Pattern text = Pattern.compile("\"" + name + "\":\"([^\"\\\\\ufffd]*)\"");
        Matcher found = text.matcher(answer.body());
        return found.find() ? found.group(1) : "";
    }

    /** A payment is not lost for a reference that cannot be stored: that is left out. */
    private static void keepReference(MemorySegment reply, HttpResponse<String> answer)
            throws Throwable {
        try (Arena memory = Arena.ofConfined()) {
            int kept = (int) Native.REPLY_REF.invokeExact(reply,
                    Native.text(memory, said(answer, "channel_ref")));
        }
    }

    private static String member(String name, String text) {
        return ",\"" + name + "\":\"" + text.replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
    }

    /** The one call that moves money.  Whatever is not a clear answer is UNKNOWN. */
    static int execute(MemorySegment context, MemorySegment attempt, MemorySegment reply) {
        try {
            Struct of = new Struct("tl_attempt", attempt);
            String payload = of.text("payload");
            // Made of the payload alone, so that each send of a key says the same.
            String order = payload.substring(0, payload.length() - 1)
                    + member("channel_key", of.text("channel_key"))
                    + member("serial_no", of.text("key.serial_no"))
                    + member("cust_no", of.text("key.cust_no"))
                    + member("op_code", of.text("key.op_code")) + "}";
            HttpResponse<String> answer = exchange(attempt, HttpRequest.newBuilder()
                    .uri(URI.create(address + "/v1/pay"))
                    .POST(HttpRequest.BodyPublishers.ofString(order)));
            if (answer == null) {
                return Execute.NOT_SENT.number;
            }
            keepReference(reply, answer);
            return switch (answer.statusCode() + " " + said(answer, "outcome")) {
                case "200 succeeded" -> Execute.SUCCEEDED.number;
                case "200 declined" -> Execute.DECLINED.number;
                case "202 accepted" -> Execute.ACCEPTED.number;
                case "429 rate_limited" -> Execute.RETRY_LATER.number;
                default -> Execute.UNKNOWN.number;
            };
        } catch (Throwable e) {
            return Execute.UNKNOWN.number;
        }
    }

    /** What became of it, asked by the retry lane. */
    static int query(MemorySegment context, MemorySegment attempt, MemorySegment reply) {
        try {
            String key = new Struct("tl_attempt", attempt).text("channel_key");
            HttpResponse<String> answer = exchange(attempt,
                    HttpRequest.newBuilder(URI.create(address + "/v1/payments/" + key)));
            if (answer == null) {
                return Query.UNREACHABLE.number;
            }
            keepReference(reply, answer);
            return switch (answer.statusCode() + " " + said(answer, "status")) {
                case "200 succeeded" -> Query.SUCCEEDED.number;
                case "200 failed" -> Query.FAILED.number;
                case "200 pending" -> Query.PENDING.number;
                case "404 not_found" -> Query.NOT_FOUND.number;
                default -> Query.UNREACHABLE.number;
            };
        } catch (Throwable e) {
            return Query.UNREACHABLE.number;
        }
    }
}
