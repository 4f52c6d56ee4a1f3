package guard

import (
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/fault"
)

// maxUser bounds the name that a proxy gives, in bytes.
const maxUser = 200

// proxyUsers are the values of the header in which a trusted proxy names the user; none from anybody else.
func (g *Guard) proxyUsers(r *http.Request) []string {
	if g.ProxyUserHeader == "" || !g.trusts(remote(r)) {
		return nil
	}
	return r.Header.Values(g.ProxyUserHeader)
}

// proxyUser is the one name among the values; unauthenticated if it is none that the record can have.
func proxyUser(values []string) (string, error) {
	user := strings.TrimSpace(values[0])
	// A comma is where a proxy has joined two headers, one of which may be the caller's own.
	hidden := func(r rune) bool { return r == ',' || r == utf8.RuneError || !unicode.IsPrint(r) }
	if len(values) > 1 || user == "" || len(values[0]) > maxUser || strings.ContainsFunc(user, hidden) {
		return "", fault.New(fault.Unauthenticated, "the proxy must name one user, in 1 to %d bytes of visible characters without a comma; "+
			"it has named none that can be recorded", maxUser)
	}
	return user, nil
}
