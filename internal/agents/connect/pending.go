package connect

import (
	"crypto/rand"
	"slices"
	"sync"
)

// keptRequest is the size in bytes up to which a request that calls no tool is kept, to be sent again on the next
// connection.
const keptRequest = 64 << 10

// replayID is the id of an initialize that is sent again; its answer is discarded.
const replayID = "claudeops-connect:initialize"

// request is one that the client waits for.
type request struct {
	envelope
	line []byte // "" for calls of tools, which are never sent twice, and for what is too long
}

// pending are the requests under way, and what the client said first. It is safe for concurrent use.
type pending struct {
	mu          sync.Mutex
	requests    []request // in the order in which they came
	initialize  []byte    // the client's, once it was answered
	initialized bool      // the client has said so
}

// sent takes note of a message on its way to the door.
func (p *pending) sent(line []byte) {
	e, ok := look(line)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case e.Method == methodInitialized:
		p.initialized = true
	case e.Method == methodCancelled && !e.isRequest():
		p.take(key(e.Params.Cancels)) // the door does not answer what was cancelled
	case e.isRequest():
		r := request{envelope: e}
		if e.Method != methodCall && len(line) <= keptRequest {
			r.line = line
		}
		p.requests = append(p.requests, r)
	}
}

// answered takes note of a message on its way to the client, and reports whether the client is to see it.
func (p *pending) answered(line []byte) bool {
	e, ok := look(line)
	if !ok || e.Method != "" {
		return true
	}
	id := key(e.ID)
	if id == "text "+replayID {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r, found := p.take(id); found && r.Method == methodInitialize {
		p.initialize = r.line
	}
	return true
}

func (p *pending) take(id string) (request, bool) {
	at := slices.IndexFunc(p.requests, func(r request) bool { return key(r.ID) == id })
	if at < 0 {
		return request{}, false
	}
	r := p.requests[at]
	p.requests = slices.Delete(p.requests, at, at+1)
	return r, true
}

// empty reports whether the client waits for nothing.
func (p *pending) empty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.requests) == 0
}

// lost returns the answers to the requests that cannot be sent again, after the connection broke. The others stay; none
// does when the connection was the last one.
func (p *pending) lost(last bool) (answers [][]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = slices.DeleteFunc(p.requests, func(r request) bool {
		if r.line != nil && !last {
			return false
		}
		answers = append(answers, lostCall(r.envelope).answer(r.envelope))
		return true
	})
	return answers
}

// again returns the first messages for a new connection: the client's initialize, and the requests that still wait.
func (p *pending) again() (lines [][]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if replay, err := withID(p.initialize, replayID); p.initialize != nil && err == nil {
		lines = append(lines, replay)
		if p.initialized {
			lines = append(lines, []byte(`{"jsonrpc":"2.0","method":"`+methodInitialized+`"}`+"\n"))
		}
	}
	for _, r := range p.requests {
		lines = append(lines, r.line)
	}
	return lines
}

// lostCall returns the failure of a request whose connection broke before its answer came.
func lostCall(e envelope) failure {
	f := failure{Code: "upstream_error", RequestID: rand.Text(),
		Message: "The connection to Claude Ops broke before the answer came, so it is " +
			"not known whether this call was carried out. If it only reads, make it again; if it changes something, look first " +
			"whether it has."}
	if e.Params.Tool == "create_pr" {
		f.Retryable = true
		f.Message = "The connection to Claude Ops broke before the answer came, so it is not known whether the pull " +
			"request was made. " +
			"Make the identical call again: what was begun is found and completed, and no second pull request is made."
	}
	return f
}

// unsent returns the failure of a request that was never sent.
func unsent() failure {
	const soon = 5
	return failure{
		Code: "timeout", Retryable: true, RetryAfterSeconds: soon, RequestID: rand.Text(),
		Message: "Claude Ops cannot be reached, so the call was not sent and nothing was done. Make it again in a few seconds.",
	}
}
