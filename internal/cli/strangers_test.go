package cli_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
)

const hookToken = "a-token-of-the-hook-of-tests"

var hooksOfTest = "hooks:\n  alerts: {token_sha256: " + sumOfTest(hookToken) + "}\n"

func sumOfTest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// hooks is the status of a call of the hook, for alerts of which none is firing.
func (s *signedInWorld) hooks() int {
	s.Helper()
	status, text := s.ask(http.MethodPost, s.address+"/hooks/run/alerts", `{"alerts":[]}`, s.bearer(hookToken))
	if strings.Contains(text, "nonsense") {
		s.Errorf("anybody reads what is wrong with the policy: %s", text)
	}
	return status
}

func formHeaders() http.Header {
	return http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
}

func tokenForm(client, refresh string) string {
	return url.Values{"grant_type": {"refresh_token"}, "client_id": {client}, "refresh_token": {refresh}}.Encode()
}

// viewer signs bob in, and returns his cookie.
func (s *signedInWorld) viewer() string {
	s.Helper()
	status, cookie := s.signIn("bob")
	if status != http.StatusOK || cookie == "" {
		s.Fatalf("%d", status)
	}
	return cookie
}

// rowsOf are the rows of the audit with an action, of all of them for "".
func (w *peopleWorld) rowsOf(action string) (out []map[string]any) {
	w.Helper()
	var listed struct{ Items []map[string]any }
	w.read(&listed, "audit", "list", "--limit", "1000")
	for _, row := range listed.Items {
		if action == "" || row["action"] == action {
			out = append(out, row)
		}
	}
	return out
}
