package main

/*
#include <stdlib.h>
#include <tradelock/workflow.h>
*/
import "C"

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
	"unsafe"
)

var bank string // such as http://127.0.0.1:8099

// An answer of the bank.
type said struct {
	Outcome, Status string
	Reference       any `json:"channel_ref"`
}

// exchange makes one request, on a connection of its own, so that nothing is repeated.  What it
// returns is "200 " and so on; "" when it was never connected, or no time is left.
func exchange(attempt *C.tl_attempt, method, path string, body []byte) (code string, answer said,
	err error) {
	request, err := http.NewRequest(method, bank+path, bytes.NewReader(body))
	if err != nil {
		return "", answer, nil
	}
	left := time.Duration(C.tl_attempt_left_ms(attempt)) * time.Millisecond // asked for last
	if left <= 0 {
		return "", answer, nil
	}
	client := http.Client{
		Timeout:   left,
		Transport: &http.Transport{DisableKeepAlives: true}, // and no proxy
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
	response, err := client.Do(request)
	if err != nil {
		var network *net.OpError
		if errors.As(err, &network) && network.Op == "dial" {
			return "", answer, nil
		}
		return "", answer, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	return fmt.Sprint(response.StatusCode, " "), answer, err
}

// keep gives the library the bank's name of the payment.  A payment is not lost for one that cannot
// be stored: that is left out.
func keep(reply *C.tl_reply, answer said) {
	given, _ := answer.Reference.(string)
	if strings.ContainsAny(given, "\x00\ufffd") {
		return
	}
	reference := C.CString(given)
	defer C.free(unsafe.Pointer(reference))
	C.tl_reply_ref(reply, reference)
}

// order is made of the payload alone, so that each send of a key says the same.
func order(attempt *C.tl_attempt) ([]byte, error) {
	fields := map[string]any{}
	payload := json.NewDecoder(bytes.NewReader(
		C.GoBytes(attempt.payload, C.int(attempt.payload_size))))
	payload.UseNumber()
	if err := payload.Decode(&fields); err != nil {
		return nil, err
	}
	fields["channel_key"] = C.GoString(attempt.channel_key)
	fields["serial_no"] = C.GoString(attempt.key.serial_no)
	fields["cust_no"] = C.GoString(attempt.key.cust_no)
	fields["op_code"] = C.GoString(attempt.key.op_code)
	return json.Marshal(fields)
}

// goExecute is the one call that moves money.  Whatever is not a clear answer is UNKNOWN.
//
//export goExecute
func goExecute(context unsafe.Pointer, attempt *C.tl_attempt,
	reply *C.tl_reply) (means C.tl_execute_result) {
	defer func() {
		if recover() != nil {
			means = C.TL_EXECUTE_UNKNOWN
		}
	}()
	body, err := order(attempt)
	if err != nil {
		return C.TL_EXECUTE_NOT_SENT
	}
	code, answer, err := exchange(attempt, "POST", "/v1/pay", body)
	if err != nil {
		return C.TL_EXECUTE_UNKNOWN
	}
	keep(reply, answer)
	switch code + answer.Outcome {
	case "":
		return C.TL_EXECUTE_NOT_SENT
	case "200 succeeded":
		return C.TL_EXECUTE_SUCCEEDED
	case "200 declined":
		return C.TL_EXECUTE_DECLINED
	case "202 accepted":
		return C.TL_EXECUTE_ACCEPTED
	case "429 rate_limited":
		return C.TL_EXECUTE_RETRY_LATER
	}
	return C.TL_EXECUTE_UNKNOWN
}

// goQuery is what the retry lane asks: what became of it?
//
//export goQuery
func goQuery(context unsafe.Pointer, attempt *C.tl_attempt,
	reply *C.tl_reply) (means C.tl_query_result) {
	defer func() {
		if recover() != nil {
			means = C.TL_QUERY_UNREACHABLE
		}
	}()
	path := "/v1/payments/" + C.GoString(attempt.channel_key)
	code, answer, err := exchange(attempt, "GET", path, nil)
	if err != nil {
		return C.TL_QUERY_UNREACHABLE
	}
	keep(reply, answer)
	switch code + answer.Status {
	case "200 succeeded":
		return C.TL_QUERY_SUCCEEDED
	case "200 failed":
		return C.TL_QUERY_FAILED
	case "200 pending":
		return C.TL_QUERY_PENDING
	case "404 not_found":
		return C.TL_QUERY_NOT_FOUND
	}
	return C.TL_QUERY_UNREACHABLE
}
