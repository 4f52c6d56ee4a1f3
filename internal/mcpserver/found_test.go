package mcpserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/mcpserver"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// scripts is a toolset whose tools come and go.
type scripts struct {
	mu    sync.Mutex
	names map[string]string // description by name
}

func (s *scripts) set(names map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names = names
}

type ran struct {
	Said string `json:"said"`
}

func (s *scripts) toolset() operation.Toolset {
	object := json.RawMessage(`{"type":"object"}`)
	return operation.Toolset{
		Name: "scripts", Instructions: "Run.",
		Found: func(context.Context) (all []operation.Operation) {
			s.mu.Lock()
			defer s.mu.Unlock()
			for name, description := range s.names {
				all = append(all, operationtest.Plain(operation.Operation{
					Name: name, Effect: operation.Exec, Tool: operation.Tool{Title: name, Description: description},
					Schemas: operation.Schemas{Input: object, Output: object},
				}, true, func(_ context.Context, _ operation.Call, _ struct{}) (ran, error) {
					s.mu.Lock()
					defer s.mu.Unlock()
					if now, has := s.names[name]; has {
						return ran{now}, nil
					}
					return ran{}, &operation.Fault{General: fault.New(fault.NotFound, "gone")}
				}))
			}
			return all
		},
		Form: &operation.Form{
			Answers: true, FailureType: reflect.TypeFor[ran](),
			Failure: func(o operation.Operation, err error, _ string) any { return ran{o.Name + ": " + err.Error()} },
			Text:    func(answer any) string { return "text " + answer.(ran).Said },
		},
	}
}

// client is a client that waits for each line.
type client struct {
	*testing.T
	in  io.Writer
	out *bufio.Reader
}

func connect(t *testing.T, o mcpserver.Options, sets ...operation.Toolset) client {
	t.Helper()
	o.Version, o.Log, o.NewID = "test", slog.New(slog.DiscardHandler), func() string { return "id-1" }
	s := must.Get(mcpserver.New(sets, o))(t)
	inRead, in := io.Pipe()
	out, outWrite := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(context.Background(), mcpserver.Client{}, inRead, outWrite) }()
	t.Cleanup(func() {
		_ = in.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return client{t, in, bufio.NewReader(out)}
}

func (c client) send(line string) {
	c.Helper()
	must.Get(fmt.Fprintln(c.in, line))(c)
}

func (c client) next() string {
	c.Helper()
	return must.Get(c.out.ReadString('\n'))(c)
}

// greets begins as clients do, and returns the greeting.
func (c client) greets() string {
	c.Helper()
	c.send(hello)
	greeting := c.next()
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return greeting
}

// until is the next line that has the text; what comes before it is passed over.
func (c client) until(text string) string {
	c.Helper()
	for {
		if line := c.next(); strings.Contains(line, text) {
			return line
		}
	}
}

func TestToolsThatComeAndGoAreListedCalledAndTold(t *testing.T) {
	s := &scripts{names: map[string]string{"one": "first"}}
	ticks := make(chan time.Time)
	c := connect(t, mcpserver.Options{Ticks: ticks}, s.toolset())
	must.Contain(t, c.greets(), `"listChanged":true`)
	c.send(list)
	must.Contain(t, c.until(`"id":2`), `"name":"one"`)
	s.set(map[string]string{"one": "first", "two": "second"})
	ticks <- time.Time{}
	c.until("notifications/tools/list_changed")
	c.send(list)
	must.Contain(t, c.until(`"id":2`), `"name":"two"`)
	s.set(map[string]string{"one": "changed", "three": "third"})
	c.send(call("three", "{}")) // it was not listed yet
	if line := c.until(`"id":3`); !strings.Contains(line, `"text":"text third"`) ||
		strings.Contains(line, `"isError":true`) {
		t.Errorf("call: %s", line)
	}
	c.send(call("two", "{}")) // it is gone, and says so in the form of its toolset
	if line := c.until(`"id":3`); !strings.Contains(line, `"said":"two: [not_found] gone"`) ||
		strings.Contains(line, `"isError":true`) {
		t.Errorf("call: %s", line)
	}
	c.send(list)
	line := c.until(`"id":2`)
	if strings.Contains(line, `"name":"two"`) || !strings.Contains(line, `"description":"changed"`) {
		t.Errorf("list: %s", line)
	}
	s.set(map[string]string{"one": "changed"})
	ticks <- time.Time{}
	c.until("notifications/tools/list_changed")
	ticks <- time.Time{} // nothing has changed
	c.send(list)
	must.Contain(t, c.next(), `"id":2`)
}

func TestTheFirstListIsNoChange(t *testing.T) {
	s := &scripts{names: map[string]string{"one": "first"}}
	c := connect(t, mcpserver.Options{}, s.toolset())
	c.greets()
	for range 2 {
		c.send(list)
		if line := c.next(); !strings.Contains(line, `"id":2`) || !strings.Contains(line, `"name":"one"`) {
			t.Errorf("list: %s", line)
		}
	}
	c.send(call("one", "{}"))
	must.Contain(t, c.next(), `"id":3`)
}

func TestOnlyToolsetsWhoseToolsComeAndGoDeclareThat(t *testing.T) {
	c := connect(t, mcpserver.Options{}, (&flow{}).toolset())
	if line := c.greets(); strings.Contains(line, "listChanged") {
		t.Errorf("greeting: %s", line)
	}
}

// Only a list that stays the same while a client is connected may be kept by it.
func TestListsThatCannotChangeMayBeKept(t *testing.T) {
	s, fixed := &scripts{names: map[string]string{"one": "a script"}}, (&flow{}).toolset()
	fixed.Prompts = []operation.Prompt{{Name: "a", Tool: "list_prs"}}
	for name, c := range map[string]client{
		"fixed": connect(t, mcpserver.Options{}, fixed), "found": connect(t, mcpserver.Options{}, fixed, s.toolset()),
	} {
		for method, kept := range map[string]bool{
			"tools/list": name == "fixed", "prompts/list": true, "resources/list": false,
		} {
			c.send(strings.Replace(modern, "tools/list", method, 1))
			if line := c.until(`"id":`); strings.Contains(line, `"ttlMs":300000`) != kept {
				t.Errorf("%s, %s may be kept: %t, want %t: %s", name, method, !kept, kept, line)
			}
		}
	}
}

func TestAToolThatIsFoundTakesNoOthersName(t *testing.T) {
	s := &scripts{names: map[string]string{"list_prs": "false friend"}}
	f := &flow{err: fault.New(fault.NotFound, "the true one")}
	c := connect(t, mcpserver.Options{}, f.toolset(), s.toolset())
	c.greets()
	c.send(list)
	if line := c.until(`"id":2`); strings.Contains(line, "false friend") {
		t.Errorf("list: %s", line)
	}
	c.send(call("list_prs", "{}"))
	must.Contain(t, c.until(`"id":3`), "the true one")
}

func TestAServerSpeaksTheVersionsThatItIsMadeFor(t *testing.T) {
	for asked, want := range map[string]string{"2025-03-26": "2025-03-26", "2025-11-25": "2025-11-25",
		"2025-06-18": "2025-11-25", "1.0": "2025-11-25"} {
		c := connect(t, mcpserver.Options{Versions: []string{"2025-11-25", "2025-03-26"}}, (&flow{}).toolset())
		c.send(strings.Replace(hello, "2025-11-25", asked, 1))
		if line := c.next(); !strings.Contains(line, `"protocolVersion":"`+want+`"`) {
			t.Errorf("%s: %s", asked, line)
		}
	}
	c := connect(t, mcpserver.Options{Versions: []string{"2025-11-25", "2025-03-26"}}, (&flow{}).toolset())
	c.send(strings.Replace(modern, "tools/list", "server/discover", 1))
	must.Contain(t, c.next(), `"supportedVersions":["2025-11-25","2025-03-26"]`)
}
