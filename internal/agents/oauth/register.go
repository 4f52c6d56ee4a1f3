package oauth

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/content"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
)

// maxClientName bounds what a program calls itself, in runes, so that the name of its token fits beside the person's.
const maxClientName = 24

// metadata is a program's registration request (RFC 7591). Unknown members are ignored, as the RFC demands.
type metadata struct {
	Redirects []string `json:"redirect_uris"`
	Name      string   `json:"client_name"`
	Method    string   `json:"token_endpoint_auth_method"`
	Grants    []string `json:"grant_types"`
	Responses []string `json:"response_types"`
}

// Registered is the answer to a registration.
type Registered struct {
	ID        string   `json:"client_id"`
	IssuedAt  int64    `json:"client_id_issued_at"`
	Name      string   `json:"client_name"`
	Redirects []string `json:"redirect_uris"`
	Method    string   `json:"token_endpoint_auth_method"`
	Grants    []string `json:"grant_types"`
	Responses []string `json:"response_types"`
	Scope     string   `json:"scope"`
}

// Register makes a program known that asks for it (RFC 7591). Nothing is kept of one whose description is refused, with
// an *Error. id is that of the request.
func (s *Service) Register(ctx context.Context, id string, body []byte) (Registered, error) {
	m, err := readMetadata(body, s.Providers)
	if err != nil {
		return Registered{}, err
	}
	public, rerr := s.secret()
	if rerr != nil {
		return Registered{}, rerr
	}
	c := access.Client{ID: public[:22], Name: m.Name, Redirects: m.Redirects, CreatedAt: s.Now()}
	row := s.row(ActionRegister, id, record.Actor{Client: c.Name}, fmt.Sprintf("client %s, which sends browsers back to %s", c.ID,
		strings.Join(c.Redirects, " ")))
	if err := s.Store().InsertClient(ctx, c, maxClients, row); err != nil {
		return Registered{}, err
	}
	return Registered{
		ID: c.ID, IssuedAt: c.CreatedAt.Truncate(time.Second).Unix(), Name: c.Name, Redirects: c.Redirects, Method: "none",
		Grants: []string{"authorization_code", "refresh_token"}, Responses: []string{"code"}, Scope: Scope,
	}, nil
}

func readMetadata(body []byte, providers []string) (m metadata, _ error) {
	if json.Unmarshal(body, &m) != nil {
		return m, wrong(errClientMeta, "the body must be a JSON object with redirect_uris and client_name")
	}
	if len(m.Redirects) == 0 || len(m.Redirects) > maxRedirects {
		return m, wrong(errRedirect, fmt.Sprintf("redirect_uris must have 1 to %d addresses", maxRedirects))
	}
	for _, r := range m.Redirects {
		if _, ok := parseRedirect(r); !ok {
			return m, wrong(errRedirect, fmt.Sprintf("a redirect address has https, http to this machine, or a scheme of a "+
				"program such as com.example.app:, no fragment, and at most %d bytes", maxRedirect))
		}
	}
	switch {
	case m.Method != "" && m.Method != "none":
		return m, wrong(errClientMeta, "programs have no secret here: token_endpoint_auth_method must be none")
	case len(m.Grants) > 0 && !slices.Contains(m.Grants, "authorization_code"):
		return m, wrong(errClientMeta, "grant_types must have authorization_code")
	case len(m.Responses) > 0 && !slices.Contains(m.Responses, "code"):
		return m, wrong(errClientMeta, "response_types must have code")
	}
	if m.Name = clientName(m.Name); m.Name == "" {
		m.Name = "an unnamed program"
	}
	if access.Reserved(m.Name, providers...) {
		return m, wrong(errClientMeta, "client_name looks like the name of a person or of the server; choose another one")
	}
	return m, nil
}

// clientName returns a program's name for pages and records: one line of visible characters.
func clientName(given string) string {
	return content.Clean(strings.Join(strings.Fields(content.CleanAll(given)), " "), maxClientName)
}
