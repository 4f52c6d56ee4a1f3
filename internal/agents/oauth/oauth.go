// Package oauth lets programs ask people for access as agents (OAuth 2.1): a program registers, or has the address of
// its description for an id; a browser comes with what it asks for, a person allows it, and the program exchanges a
// code for an access token and a refresh token. It then has an agent's token: it is listed, used, cut off and revoked
// like those that were shown to a person.
//
// A program's identity cannot be proven: it has no secret of its own. Two things keep others out: a code goes to an
// address that was registered or described, and it is useless without the secret that the requesting program kept
// (PKCE). If a code or a refresh token is used a second time, all tokens that came from it are revoked.
package oauth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Scope is the only scope. A program's rights are chosen by the person, whatever the program asks for.
const Scope = "mcp"

// How long things are good.
const (
	CodeLife   = time.Minute
	AccessLife = time.Hour
	IdleLife   = 30 * 24 * time.Hour // of a refresh token
	GrantLife  = 90 * 24 * time.Hour // in all

	codeKept = 24 * time.Hour // that a code was used, to recognise it again
)

// maxClients limits the registered programs; beyond it, the oldest registrations without a grant are removed.
const maxClients = 1000

// Store keeps programs, codes and grants. internal/records/store implements it; errors are faults.
type Store interface {
	InsertClient(ctx context.Context, c access.Client, keep int, rows ...record.Attempt) error
	FindClient(ctx context.Context, id string) (c access.Client, found bool, err error)
	InsertCode(ctx context.Context, c access.Code, before time.Time, rows ...record.Attempt) error
	FindCode(ctx context.Context, hash string) (c access.Code, found bool, err error)
	// UseCode makes the token of a grant in place of an unused code; used is false if there is none.
	UseCode(ctx context.Context, hash string, g access.Grant,
		row func(t access.Token) record.Attempt) (t access.Token, used bool, err error)
	FindGrant(ctx context.Context, family string) (g access.Grant, found bool, err error)
	// GrantOfAccess returns the grant of which an access token with the hash is good at a time.
	GrantOfAccess(ctx context.Context, hash string, now time.Time) (g access.Grant, found bool, err error)
	// Rotate gives a grant other keys in place of the refresh token with the hash was; rotated is false if that is not
	// good any more.
	Rotate(ctx context.Context, token, was string, k access.Keys) (rotated bool, err error)
	// EndGrant revokes a token; ended is false, and no row is added, if it is good no more.
	EndGrant(ctx context.Context, token string, rows ...record.Attempt) (ended bool, err error)
}

// Gatekeeper says what a person may still give; *access.Gatekeeper is one.
type Gatekeeper interface {
	Granted(ctx context.Context, t access.Token) (gitprovider.Tier, error)
}

// Options configures a Service. All fields are required but Documents.
type Options struct {
	Kernel     func() *operation.Kernel
	Store      func() Store
	Gatekeeper func() Gatekeeper
	// Record appends to the audit.
	Record  func(ctx context.Context, a record.Attempt) error
	MaxTier func() gitprovider.Tier // that any agent may have here
	// Documents reads the documents of programs; nil: programs register.
	Documents *Documents
	// Providers are the providers of identities, whose names no program may have.
	Providers []string
	Random    io.Reader
	Now       func() time.Time
	NewID     func() string
}

// Service admits programs. It is safe for concurrent use.
type Service struct{ Options }

// New makes a Service.
func New(o Options) *Service { return &Service{o} }

// Actions of the audit.
const (
	ActionRegister = "oauth.register"
	ActionAllow    = "oauth.allow"
	ActionDeny     = "oauth.deny"
	ActionGrant    = "oauth.grant"
	ActionRevoke   = "oauth.revoke"
	ActionReuse    = "oauth.reuse" // a code or a refresh token came a second time
	ActionRefuse   = "oauth.refuse"
)

// Error is an answer to a program, as RFC 6749, 7591 and 8707 have them.
type Error struct {
	Code        string
	Description string
}

func (e *Error) Error() string { return e.Code + ": " + e.Description }

// UnknownClient is the code of an error for a program that is not registered, or shows a secret.
const UnknownClient = "invalid_client"

// Codes of errors.
const (
	errRequest    = "invalid_request"
	errClient     = UnknownClient
	errGrant      = "invalid_grant"
	errGrantType  = "unsupported_grant_type"
	errScope      = "invalid_scope"
	errTarget     = "invalid_target"
	errResponse   = "unsupported_response_type"
	errDenied     = "access_denied"
	errRedirect   = "invalid_redirect_uri"
	errClientMeta = "invalid_client_metadata"
)

func wrong(code, description string) *Error { return &Error{code, description} }

// auditRow returns a row of the audit about a program; who it is about, as far as that is known.
func (s *Service) auditRow(action, id string, who record.Actor, message string) record.Attempt {
	return record.Attempt{Time: s.Now(), RequestID: id, Actor: who.At(record.DoorWeb), Action: action,
		Outcome: record.OutcomeDone, Message: message}
}

// Refused records that a program was refused, which the door does as often as it counts wrong credentials.
func (s *Service) Refused(ctx context.Context, id, client string, why *Error) error {
	return s.recordRefusal(ctx, id, s.callerOf(ctx, client), why.Error())
}

// RefusedFor records a wrong request that the browser of a person has brought.
func (s *Service) RefusedFor(ctx context.Context, id string, who record.Actor, client string, why *Error) error {
	return s.recordRefusal(ctx, id, who, s.callerOf(ctx, client).String()+": "+why.Error())
}

func (s *Service) recordRefusal(ctx context.Context, id string, who record.Actor, message string) error {
	row := s.auditRow(ActionRefuse, id, who, message)
	row.Code, row.Outcome = fault.Unauthenticated, record.OutcomeRefused
	return s.Record(ctx, row)
}

// callerOf returns a program for the record: by its name if it has registered, by the address of its document if it has
// one and a person has let it in. Nobody can register an address as a name.
func (s *Service) callerOf(ctx context.Context, id string) record.Actor {
	if c, found, err := s.Store().FindClient(ctx, id); err == nil && found {
		if IsDocumentID(id) {
			return record.Actor{Client: c.ID}
		}
		return record.Actor{Client: c.Name}
	}
	return unknownClient()
}

func unknownClient() record.Actor { return record.Actor{Client: "unknown client"} }

// secret returns a new random text of 43 characters.
func (s *Service) secret() (string, error) {
	b := make([]byte, 32)
	if _, err := io.ReadFull(s.Random, b); err != nil {
		return "", fault.From(err)
	}
	return base64.RawURLEncoding.EncodeToString(b), nil
}

// isSecret reports whether a text has the form of one of ours; all others are not looked up.
func isSecret(text string) bool {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return err == nil && len(b) == 32 && !strings.ContainsAny(text, "\r\n")
}

// maxClientName bounds what a program calls itself, in runes, so that the name of its token fits beside the person's.
const maxClientName = 24

// clientMetadata is a program's registration request (RFC 7591). Unknown members are ignored, as the RFC demands.
type clientMetadata struct {
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
	row := s.auditRow(ActionRegister, id, record.Actor{Client: c.Name}, fmt.Sprintf("client %s, which sends browsers back to %s", c.ID,
		strings.Join(c.Redirects, " ")))
	if err := s.Store().InsertClient(ctx, c, maxClients, row); err != nil {
		return Registered{}, err
	}
	return Registered{
		ID: c.ID, IssuedAt: c.CreatedAt.Truncate(time.Second).Unix(), Name: c.Name, Redirects: c.Redirects, Method: "none",
		Grants: []string{"authorization_code", "refresh_token"}, Responses: []string{"code"}, Scope: Scope,
	}, nil
}

func readMetadata(body []byte, providers []string) (m clientMetadata, _ error) {
	if json.Unmarshal(body, &m) != nil {
		return m, wrong(errClientMeta, "the body must be a JSON object with redirect_uris and client_name")
	}
	if why := checkMetadata(&m, providers); why != nil {
		return m, why
	}
	return m, nil
}

// checkMetadata says why a program is refused by what it says about itself, nil for one that is not, and cleans its
// name.
func checkMetadata(m *clientMetadata, providers []string) *Error {
	if len(m.Redirects) == 0 || len(m.Redirects) > maxRedirects {
		return wrong(errRedirect, fmt.Sprintf("redirect_uris must have 1 to %d addresses", maxRedirects))
	}
	for _, r := range m.Redirects {
		if _, ok := parseRedirect(r); !ok {
			return wrong(errRedirect, fmt.Sprintf("a redirect address has https, http to this machine, or a scheme of a "+
				"program such as com.example.app:, no fragment, and at most %d bytes", maxRedirect))
		}
	}
	switch {
	case m.Method != "" && m.Method != "none":
		return wrong(errClientMeta, "programs have no secret here: token_endpoint_auth_method must be none")
	case len(m.Grants) > 0 && !slices.Contains(m.Grants, "authorization_code"):
		return wrong(errClientMeta, "grant_types must have authorization_code")
	case len(m.Responses) > 0 && !slices.Contains(m.Responses, "code"):
		return wrong(errClientMeta, "response_types must have code")
	}
	if m.Name = clientName(m.Name); m.Name == "" {
		m.Name = "an unnamed program"
	}
	if access.Reserved(m.Name, providers...) {
		return wrong(errClientMeta, "client_name looks like the name of a person or of the server; choose another one")
	}
	return nil
}

// clientName returns a program's name for pages and records: one line of visible characters.
func clientName(given string) string {
	return textscan.Clean(strings.Join(strings.Fields(textscan.CleanAll(given)), " "), maxClientName)
}
