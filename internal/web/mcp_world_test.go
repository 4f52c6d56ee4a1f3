package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/web/mcphttp"
)

// mcpClient is an MCP client by its address.
type mcpClient struct {
	testing.TB
	at, token, session string
	http               *http.Client
}

// mcpAnswer is an HTTP answer to a message.
type mcpAnswer struct {
	*http.Response
	lines *bufio.Reader
}

// send posts a message. The body of the answer is open until the end of the test.
func (c *mcpClient) send(body string, edits ...edit) mcpAnswer {
	c.Helper()
	return c.request(context.Background(), http.MethodPost, body, edits...)
}

func (c *mcpClient) request(ctx context.Context, method, body string, edits ...edit) mcpAnswer {
	c.Helper()
	a, err := c.try(ctx, method, body, edits...)
	if err != nil {
		c.Fatal(err)
	}
	return a
}

func (c *mcpClient) try(ctx context.Context, method, body string, edits ...edit) (mcpAnswer, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.at+mcphttp.Path, strings.NewReader(body))
	if err != nil {
		return mcpAnswer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+c.token)
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
		req.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	}
	for _, e := range edits {
		e(req)
	}
	answer, err := c.http.Do(req)
	if err != nil {
		return mcpAnswer{}, err
	}
	c.Cleanup(func() { _ = answer.Body.Close() })
	return mcpAnswer{answer, bufio.NewReader(answer.Body)}, nil
}

// read is the next message of an answer, with the id of its event; io.EOF at the end.
func (a mcpAnswer) read() (m message, event string, err error) {
	if !strings.HasPrefix(a.Header.Get("Content-Type"), "text/event-stream") {
		err = json.NewDecoder(a.lines).Decode(&m)
		return m, "", err
	}
	for {
		line, err := a.lines.ReadString('\n')
		if err != nil {
			return m, event, err
		}
		if id, found := strings.CutPrefix(line, "id: "); found {
			event = strings.TrimSpace(id)
		}
		if data, found := strings.CutPrefix(line, "data: "); found && strings.TrimSpace(data) != "" {
			return m, event, json.Unmarshal([]byte(data), &m)
		}
	}
}

// answer is the answer behind notifications.
func (c *mcpClient) answer(a mcpAnswer) (m message, notes int) {
	c.Helper()
	for {
		m, _, err := a.read()
		if err != nil {
			c.Fatalf("%s: %v", a.Status, err)
		}
		if m.Method == "" {
			return m, notes
		}
		notes++
	}
}

const greeting = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"tester","version":"9"}}}`

// dialed is a client that has begun no session.
func dialed(t testing.TB, address, token string) *mcpClient {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &mcpClient{TB: t, at: address, token: token, http: &http.Client{Transport: transport}}
}

// began is a client that has begun a session.
func began(t testing.TB, address, token string) *mcpClient {
	t.Helper()
	c := dialed(t, address, token)
	c.begin()
	return c
}

// begin begins a session.
func (c *mcpClient) begin() {
	c.Helper()
	a := c.send(greeting)
	c.session = a.Header.Get("Mcp-Session-Id")
	if m, _ := c.answer(a); a.StatusCode != http.StatusOK || c.session == "" || m.Error != nil {
		c.Fatalf("initialize: %s %+v", a.Status, m)
	}
	if a := c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); a.StatusCode != http.StatusAccepted {
		c.Fatalf("initialized: %s", a.Status)
	}
}

// createPR is a call of create_pr.
func createPR(id int) string {
	return fmt.Sprintf(
		`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"create_pr","arguments":%s,"_meta":{"progressToken":"p"}}}`, id, strings.TrimSpace(request(nil)))
}

// modern is a request that stands for itself, and the headers that it has.
func modern(id int, method, params string) (string, edit) {
	var named struct{ Name, URI string }
	_ = json.Unmarshal([]byte(params), &named)
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"tester","version":"9"},"io.modelcontextprotocol/clientCapabilities":{}}`
	params = strings.TrimSuffix(params, "}")
	if params != "{" {
		params += ","
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s%s}}`, id, method, params, meta),
		func(r *http.Request) {
			r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
			r.Header.Set("Mcp-Method", method)
			if name := named.Name + named.URI; name != "" {
				r.Header.Set("Mcp-Name", name)
			}
		}
}

func modernCreatePR(id int) (string, edit) {
	return modern(id, "tools/call", fmt.Sprintf(`{"name":"create_pr","arguments":%s}`, strings.TrimSpace(request(nil))))
}

func drained(a mcpAnswer) string {
	text, _ := io.ReadAll(a.lines)
	return string(text)
}
