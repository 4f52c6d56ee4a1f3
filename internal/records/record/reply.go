package record

// Reply is the answer to a request with an Idempotency-Key.
type Reply struct {
	Status int // 0: nothing yet
	Body   []byte
}
