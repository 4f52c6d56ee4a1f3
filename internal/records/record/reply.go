package record

// Reply is what was answered to a request that carried an Idempotency-Key.
type Reply struct {
	Status int // 0: nothing yet
	Body   []byte
}
