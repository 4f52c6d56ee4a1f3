package cli_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/cli"
)

// More doors of a running server, and the process of an agent of its own.

// looks is what the operator's own token gets that reads the pull request of demo/home by REST.
func (s *signedInWorld) looks() fault.Code {
	s.Helper()
	_, text := s.get(s.address+"/api/v1/prs/1?repo_owner=demo&repo_name=home",
		s.bearer(""))
	return decode[struct{ Code fault.Code }](s, text).Code
}

// revises is what that token gets that adds to the pull request of demo/home, or replies to its review without files;
// "" for all refusals that are not the rules'.
func (s *signedInWorld) revises(files bool) fault.Code {
	s.Helper()
	body := newFile()
	body["revises"], body["reply"] = 1, "Done."
	if !files {
		body["files"] = []any{}
	}
	code, _ := s.asks(s.address+"/api/v1/prs", body)
	if code == fault.RepoNotAllowed || code == fault.ReadOnly {
		return code
	}
	return ""
}

// starts is the status of ann's browser that starts a session, and runs the code of the command line that runs one.
// Only one session runs at a time, so that each waits for the other.
func (s *signedInWorld) starts() (status int) {
	s.Helper()
	s.becomes("no session runs", func() bool {
		status = s.acts("/api/v1/sessions", `{"tier":1}`)
		return status != http.StatusConflict
	})
	return status
}

func (s *signedInWorld) runs() (code fault.Code) {
	s.Helper()
	s.becomes("no session runs", func() bool {
		out, exit := s.command(lookupIn(s.env), "run", "--tier", "1", "--json")
		var answer struct{ Code fault.Code }
		if err := json.Unmarshal([]byte(out), &answer); err != nil && exit != 0 {
			s.Fatalf("%d %s", exit, out)
		}
		code = answer.Code
		return code != fault.Conflict
	})
	return code
}

// signsInByToken is the status of a browser that signs in with the operator's token.
func (s *signedInWorld) signsInByToken() int {
	s.Helper()
	return s.status(http.MethodPost, s.address+"/sign-in", `{"token":"`+s.seed().token+`"}`,
		http.Header{"Content-Type": {"application/json"}})
}

// signsInOnce is the status of a browser at a one-time address. One that was refused is tried again by the next call.
func (s *signedInWorld) signsInOnce() int {
	s.Helper()
	if s.once == "" {
		out, exit := s.command(lookupIn(s.env), "dashboard", "--json")
		if exit != 0 {
			s.Fatalf("%d %s", exit, out)
		}
		_, s.once, _ = strings.Cut(decode[struct{ URL string }](s, out).URL, "?code=")
	}
	headers := formHeaders()
	headers.Set("Sec-Fetch-Site", "same-origin")
	status := s.status(http.MethodPost, s.address+"/sign-in", url.Values{"code": {s.once}}.Encode(), headers)
	if status != http.StatusForbidden {
		s.once = ""
	}
	return status
}

// revokes is the status of a program that gives up a token.
func (s *signedInWorld) revokes() int {
	s.Helper()
	return s.status(http.MethodPost, s.address+"/oauth/revoke",
		url.Values{"client_id": {s.client}, "token": {"x"}}.Encode(), formHeaders())
}

const greetingOfTest = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
	`"capabilities":{},"clientInfo":{"name":"tester","version":"9"}}}`

const initializedOfTest = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

func toolCall(tool string, arguments any) string {
	call, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 2, "method": "tools/call",
		"params": map[string]any{"name": tool, "arguments": arguments}})
	if err != nil {
		panic(err)
	}
	return string(call)
}

// toolAnswer is the answer to toolCall.
type toolAnswer struct {
	ID     int
	Code   fault.Code // of a request that was not admitted
	Result struct {
		Structured struct {
			Error  struct{ Code fault.Code }
			DryRun bool `json:"dry_run"`
			Number int
		} `json:"structuredContent"`
	}
}

// code is that of the refusal, "" for none.
func (a toolAnswer) code() fault.Code { return cmp.Or(a.Code, a.Result.Structured.Error.Code) }

// olderCalls is what ann's agent gets in a session as clients before 2026-07-28 have one.
func (s *signedInWorld) olderCalls(tool string, arguments any) fault.Code {
	s.Helper()
	headers := func(session string) http.Header {
		h := http.Header{"Authorization": {"Bearer " + s.agent}, "Content-Type": {"application/json"},
			"Accept": {"application/json, text/event-stream"}}
		if session != "" {
			h["Mcp-Session-Id"], h["Mcp-Protocol-Version"] = []string{session}, []string{"2025-06-18"}
		}
		return h
	}
	begun, text := s.exchangeOf(http.MethodPost, s.address+"/mcp", greetingOfTest, headers(""))
	session := begun.Header.Get("Mcp-Session-Id")
	if session != "" {
		s.status(http.MethodPost, s.address+"/mcp", initializedOfTest, headers(session))
		_, text = s.exchangeOf(http.MethodPost, s.address+"/mcp", toolCall(tool, arguments), headers(session))
		defer s.status(http.MethodDelete, s.address+"/mcp", "", headers(session))
	}
	for line := range strings.Lines(text) {
		if data, events := strings.CutPrefix(line, "data: "); events {
			text = data // the last one
		}
	}
	answer := decode[toolAnswer](s, text)
	if session == "" && answer.Code == "" {
		s.Fatalf("%d %s", begun.StatusCode, text)
	}
	return answer.code()
}

// ownAgent is a process `claudeops mcp-server` of its own, which serves an agent over stdio as long as the test runs.
type ownAgent struct {
	*signedInWorld
	in      io.Writer
	answers <-chan toolAnswer
}

func (s *signedInWorld) ownAgent() *ownAgent {
	s.Helper()
	ctx, stop := context.WithCancel(s.Context())
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(ctx, []string{"mcp-server"}, cli.Streams{In: in, Out: out, Err: io.Discard}, lookupIn(s.env))
		_ = out.Close()
	}()
	s.Cleanup(func() {
		_ = toServer.Close()
		if code := <-ended; code != 0 {
			s.Errorf("mcp-server ended with %d", code)
		}
		stop()
	})
	answers := make(chan toolAnswer)
	go func() {
		defer close(answers)
		defer func() { _, _ = io.Copy(io.Discard, fromServer) }()
		for lines := json.NewDecoder(fromServer); ; {
			var answer toolAnswer
			if err := lines.Decode(&answer); err != nil {
				return
			}
			if answer.ID == 2 {
				answers <- answer
			}
		}
	}()
	a := &ownAgent{s, toServer, answers}
	if _, err := fmt.Fprintf(toServer, "%s\n%s\n", greetingOfTest, initializedOfTest); err != nil {
		s.Fatal(err)
	}
	return a
}

func (a *ownAgent) calls(tool string, arguments any) fault.Code {
	a.Helper()
	if _, err := fmt.Fprintf(a.in, "%s\n", toolCall(tool, arguments)); err != nil {
		a.Fatal(err)
	}
	answer, there := <-a.answers
	if !there {
		a.Fatal("mcp-server has ended")
	}
	return answer.code()
}
