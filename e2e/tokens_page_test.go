//go:build e2e && linux

package e2e

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// knock asks for a session at /mcp with an agent's token.
func (d *dashboard) knock(secret string) int {
	d.Helper()
	ctx, cancel := context.WithTimeout(d.Context(), time.Minute)
	defer cancel()
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.api+"/mcp", strings.NewReader(hello))
	if err != nil {
		d.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		d.Fatal(err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

// A person makes a token for an agent, which gets in with it until the token is revoked there.
func TestDashboardMakesAndRevokesATokenOfAnAgent(t *testing.T) {
	d := newDashboard(t)
	var secret, lines, address, history string
	d.run(
		chromedp.Navigate(d.url+"/tokens"), chromedp.Click(`button[popovertarget="make"]`, chromedp.ByQuery),
		chromedp.SendKeys("#name", "laptop", chromedp.ByQuery), chromedp.SendKeys("#repos", "e2e/*", chromedp.ByQuery),
		chromedp.Click(`label[for="dry-run"]`, chromedp.ByQuery),
		chromedp.Click("#make .acts button:last-child", chromedp.ByQuery), chromedp.WaitVisible("#secret", chromedp.ByQuery),
		chromedp.Text("#secret", &secret, chromedp.ByQuery),
		chromedp.TextContent(`section[aria-labelledby="lines"]`, &lines, chromedp.ByQuery),
		chromedp.Location(&address),
	)
	secret = strings.TrimSpace(secret)
	if !strings.HasPrefix(secret, "cops_") || strings.Contains(address, secret) || strings.Contains(lines, secret) ||
		!strings.Contains(lines, d.api+"/mcp") {
		t.Fatalf("%s says %q", address, lines)
	}
	if status := d.knock(secret); status != http.StatusOK {
		t.Fatalf("the agent is answered %d", status)
	}
	d.run(
		chromedp.Navigate(d.url+"/tokens"), chromedp.TextContent("body", &history, chromedp.ByQuery),
		chromedp.Click(`button[popovertarget^="revoke-"]`, chromedp.ByQuery),
		chromedp.WaitVisible("form.sheet:popover-open", chromedp.ByQuery),
		chromedp.Click("form.sheet:popover-open button.no", chromedp.ByQuery),
		chromedp.WaitVisible("p.done", chromedp.ByQuery),
		chromedp.Location(&address),
	)
	if strings.Contains(history, secret) || !strings.Contains(history, "laptop") ||
		!strings.Contains(history, "e2e/* dry run") || strings.Contains(address, secret) {
		t.Errorf("%s, from a page that says %q", address, history)
	}
	if status := d.knock(secret); status != http.StatusUnauthorized {
		t.Errorf("an agent with a revoked token is answered %d", status)
	}
	d.quiet("making and revoking a token")
}
