package notify_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/notify"
)

// A receiver reads the whole body, verifies it as it came, drops what it has seen, and answers at once.
func ExampleVerify() {
	const secret = "0123456789abcdef" // the value of CLAUDEOPS_WEBHOOK_SECRET
	clock := func() time.Time { return time.Unix(1773486000, 0) }
	seen := map[string]bool{}

	receiver := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, notify.MaxPayload))
		if err != nil {
			http.Error(w, "too large", http.StatusRequestEntityTooLarge)
			return
		}
		if err := notify.Verify(secret, r.Header, body, clock()); err != nil {
			http.Error(w, "not from Claude Ops", http.StatusUnauthorized)
			return
		}
		if delivery := r.Header.Get(notify.HeaderDelivery); !seen[delivery] {
			seen[delivery] = true
			fmt.Println("new:", string(body))
		}
		w.WriteHeader(http.StatusNoContent)
	})

	for range 2 { // the second one is a repeat
		r := httptest.NewRequest(http.MethodPost, "/hook", strings.NewReader(`{"a":1}`))
		r.Header.Set(notify.HeaderDelivery, "c9f0f895fb98ab9159f51fd0297e236d")
		r.Header.Set(notify.HeaderTimestamp, "1773486000")
		r.Header.Set(notify.HeaderSignature, "v1=4551cbf69a8a586db1a705f0bce5951bfaa69e3fd5b955bf77f857eac61858e0")
		answer := httptest.NewRecorder()
		receiver.ServeHTTP(answer, r)
		fmt.Println(answer.Code)
	}
	// Output:
	// new: {"a":1}
	// 204
	// 204
}
