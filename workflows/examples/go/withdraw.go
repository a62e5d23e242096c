// Withdraw pays one withdrawal exactly once: withdraw CONFIG BANK SERIAL CUST AMOUNT_MINOR.
//
// The bank is an address such as http://127.0.0.1:8099; the tables are those of the tutorial.
package main

/*
#cgo pkg-config: tradelock-workflow
#include <stdlib.h>
#include <tradelock/questions.h>
#include <tradelock/worker.h>

// The callbacks in bank.go and below, as cgo declares them: without const.
tl_execute_result goExecute(void *, tl_attempt *, tl_reply *);
tl_query_result goQuery(void *, tl_attempt *, tl_reply *);
tl_status goPrepare(void *, tl_attempt *, tl_reply *, tl_book *);
tl_status goSuccess(void *, tl_attempt *, tl_reply *, tl_book *);
tl_status goFailure(void *, tl_attempt *, tl_reply *, tl_proof, tl_book *);
*/
import "C"

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"unsafe"
)

const take = "UPDATE account SET balance_minor = balance_minor - :amount_minor" +
	" WHERE cust_no = :cust_no"

// What the library keeps a pointer to, or is often given, is C's memory and is never freed.
var (
	takeMoney    = text("take money")
	giveBack     = text("give back")
	takeAgain    = text("take again")
	insertLedger = text("insert ledger")
)

// text is a C string.  One with a NUL inside would be cut there, and mean something else.
func text(from string) *C.char {
	if strings.IndexByte(from, 0) >= 0 {
		panic("a text has a NUL inside")
	}
	return C.CString(from)
}

//export goPrepare
func goPrepare(context unsafe.Pointer, attempt *C.tl_attempt, reply *C.tl_reply,
	book *C.tl_book) C.tl_status {
	C.tl_book_line(book, takeMoney)
	return C.TL_OK
}

//export goSuccess
func goSuccess(context unsafe.Pointer, attempt *C.tl_attempt, reply *C.tl_reply,
	book *C.tl_book) C.tl_status {
	if attempt.after_failure != 0 { // booked, and then found paid by two operators
		C.tl_book_line(book, takeAgain)
	}
	C.tl_book_line(book, insertLedger)
	return C.TL_OK
}

//export goFailure
func goFailure(context unsafe.Pointer, attempt *C.tl_attempt, reply *C.tl_reply, proof C.tl_proof,
	book *C.tl_book) C.tl_status {
	C.tl_book_line(book, giveBack)
	return C.TL_OK
}

// register says what the channel promises, and what is called and written.
func register(workflows *C.tl_workflows) C.tl_status {
	// The workflow may point to C's memory alone: cgo lets no pointer to Go's pass.
	statements := (*[4]C.tl_statement)(C.calloc(4, C.sizeof_tl_statement))
	defer C.free(unsafe.Pointer(statements))
	statements[0] = C.tl_statement{name: takeMoney, refused: text("too little money"),
		sql: text(take + " AND balance_minor >= :amount_minor")}
	statements[1] = C.tl_statement{name: giveBack,
		sql: text(strings.Replace(take, "- :", "+ :", 1))}
	statements[2] = C.tl_statement{name: takeAgain, sql: text(take)}
	statements[3] = C.tl_statement{name: insertLedger,
		sql: text("INSERT INTO ledger (serial_no, cust_no, amount_minor, channel_ref)" +
			" VALUES (:serial_no, :cust_no, :amount_minor, :channel_ref)")}
	workflow := C.tl_workflow{
		version: C.TL_WORKFLOW_VERSION, op_code: text("WITHDRAW"),
		channel: C.tl_channel{name: text("go-bank"), idempotent: 1, replays_first_answer: 1,
			can_query: 1},
		execute:    C.tl_execute_fn(C.goExecute),
		query:      C.tl_query_fn(C.goQuery),
		statements: &statements[0], statement_count: 4,
		book_prepare: C.tl_book_prepare_fn(C.goPrepare),
		book_success: C.tl_book_success_fn(C.goSuccess),
		book_failure: C.tl_book_failure_fn(C.goFailure),
	}
	return C.tl_workflow_register(workflows, &workflow)
}

// tell prints an answer, and returns its exit code: 0 paid, 1 not paid, 2 neither is known.
func tell(call string, status C.tl_status, reference *C.char) int {
	message := C.GoString(C.tl_error_message()) // of this thread's last call
	word, code := "ask again", 2
	if C.tl_paid(status) != 0 {
		word, code = "paid", 0
	} else if C.tl_not_paid(status) != 0 {
		word, code = "not paid", 1
	}
	name := C.GoString(C.tl_status_name(status))
	fmt.Printf("%s: %s, %s %s %s\n", call, name, word, C.GoString(reference), message)
	return code
}

// must is for what cannot go wrong in a payment, since none was begun.
func must(status C.tl_status) error {
	if status != C.TL_OK {
		return errors.New(C.GoString(C.tl_error_message()))
	}
	return nil
}

func pay(workflows *C.tl_workflows, serial, cust string, amount int64) int {
	order, _ := json.Marshal(map[string]any{
		"amount_minor": amount, "currency": "EUR", "payee": "Anna"})
	request := C.tl_request{
		version: C.TL_REQUEST_VERSION,
		key:     C.tl_key{serial_no: text(serial), cust_no: text(cust), op_code: text("WITHDRAW")},
		payload: C.CBytes(order), payload_size: C.size_t(len(order)),
		amount_minor: C.int64_t(amount), currency: text("EUR"),
	}
	defer func() {
		C.free(request.payload)
		for _, one := range []*C.char{request.key.serial_no, request.key.cust_no,
			request.key.op_code, request.currency} {
			C.free(unsafe.Pointer(one))
		}
	}()
	answer := C.tl_answer{version: C.TL_ANSWER_VERSION}
	status := C.tl_workflow_run(workflows, &request, &answer)
	if status == C.TL_UNKNOWN { // an answer of the server was lost
		status = C.tl_workflow_settle(workflows, &answer)
	}
	code := tell("run", status, &answer.view.channel_ref[0])
	C.tl_answer_clear(&answer)

	trade := C.tl_trade{version: C.TL_TRADE_VERSION, proof: C.TL_PROOF_NONE}
	// The retry lane finds out what is open; a mismatch is about the key's other payment.
	if code == 2 && status != C.TL_MISMATCH {
		status = C.tl_workflow_await(workflows, &request.key, 60000, &trade)
		return tell("await", status, &trade.channel_ref[0])
	}
	if code == 0 {
		status = C.tl_workflow_look(workflows, &request.key, &trade)
		tell("look", status, &trade.channel_ref[0])
	}
	return code
}

// serve opens a client, registers the operation, pays, and closes.
func serve(config, serial, cust string, amount int64) (code int, err error) {
	var client *C.tl_client
	var workflows *C.tl_workflows
	var worker *C.tl_worker

	defer func() {
		C.tl_worker_free(worker)
		C.tl_workflows_free(workflows)
		C.tl_client_close(client)
	}()
	options := C.tl_client_options{version: C.TL_CLIENT_OPTIONS_VERSION, config_file: text(config),
		program: text("withdraw")}
	if err = must(C.tl_client_open(&client, &options)); err != nil {
		return 2, err
	}
	if err = must(C.tl_workflows_new(&workflows, client)); err != nil {
		return 2, err
	}
	if err = must(register(workflows)); err != nil {
		return 2, err
	}
	// The threads of the retry lane; tradelock-worker is the same in a process of its own.
	threads := C.tl_worker_options{version: C.TL_WORKER_OPTIONS_VERSION}
	if err = must(C.tl_worker_start(&worker, workflows, &threads)); err != nil {
		return 2, err
	}
	return pay(workflows, serial, cust, amount), nil
}

func main() {
	// The sentence of an answer belongs to the thread that called.
	runtime.LockOSThread()
	if len(os.Args) != 6 {
		fmt.Fprintln(os.Stderr, "usage: withdraw CONFIG BANK SERIAL CUST AMOUNT_MINOR")
		os.Exit(2)
	}
	amount, err := strconv.ParseInt(os.Args[5], 10, 64)
	code := 2
	if err == nil {
		bank = os.Args[2]
		code, err = serve(os.Args[1], os.Args[3], os.Args[4], amount)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "withdraw:", err)
	}
	os.Exit(code)
}
