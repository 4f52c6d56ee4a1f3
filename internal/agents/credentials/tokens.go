// This file lets people create, list and revoke the tokens of REST and sign-in.

package credentials

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// MaxTokenName bounds the name of a token, in bytes. It is in the record of all that the token does.
const MaxTokenName = 64

// TokenStore keeps tokens. internal/records/store implements it; errors are faults.
type TokenStore interface {
	InsertToken(ctx context.Context, t access.Token, rows ...record.Attempt) error
	Tokens(ctx context.Context) ([]access.Token, error)
	// RevokeToken also revokes what was made with the token; row is given the names of that.
	RevokeToken(ctx context.Context, idOrName string, row ...func(made []string) record.Attempt) error
}

// TokenActs are the operations for people. All fields are required except Providers.
type TokenActs struct {
	Providers func() []string // of identities, whose names no token has; nil for none
	Kernel    func() *operation.Kernel
	Store     func() TokenStore
	Random    io.Reader
	Now       func() time.Time
	NewID     func() string
}

// Operations list tokens, make one and make one useless.
func (a TokenActs) Operations() []operation.Operation {
	return []operation.Operation{
		operation.Define(a.Kernel, "", a.listOperation(), operation.CallSpec[struct{}]{}, a.list),
		operation.Define(a.Kernel, "", created(), operation.CallSpec[TokenRequest]{},
			func(ctx context.Context, call operation.Call, in TokenRequest) (TokenMade, error) {
				return a.createToken(ctx, call, a.wantedToken(call, in))
			}),
		operation.Define(a.Kernel, "", revoked(), operation.CallSpec[RevokeRequest]{}, a.revoke),
	}
}

// Any makes tokens for the terminal, which says the moment at which one expires.
func (a TokenActs) Any() operation.Operation {
	o := created()
	o.Route = operation.Route{}
	return operation.Define(a.Kernel, "", o, operation.CallSpec[WantedToken]{}, a.createToken)
}

// TokenRequest is the token to make.
type TokenRequest struct {
	Name     string         `json:"name" required:"true" maxBytes:"64" doc:"Who it is for; in the record of all that it does" example:"ann"`
	MaxTier  int            `json:"max_tier,omitempty" minimum:"1" maximum:"3" doc:"The highest tier that it may act at; 1 if it is left out"`
	Scopes   []access.Scope `json:"scopes,omitempty" minItems:"1" enum:"propose,review,read,operate" doc:"No more than your own. An agent's token has none; any other needs one"`
	Agent    bool           `json:"agent,omitempty" doc:"It lets an agent in over MCP, and opens nothing else"`
	Repos    []string       `json:"repos,omitempty" doc:"The repositories that an agent's token is for, such as owner/name or owner/*; those that the server allows if it is left out"`
	DryRun   bool           `json:"dry_run,omitempty" doc:"An agent's token: everything is checked and nothing written, whether the server is in a dry run or not"`
	ReadOnly bool           `json:"read_only,omitempty" doc:"An agent's token: nothing can be proposed or written, whether the server is read-only or not"`
	Days     int            `json:"expires_in_days,omitempty" minimum:"1" maximum:"3650" doc:"90 if it is left out, for an agent's token and for a person who signs in by a provider; else it is good until it is revoked"`
}

// DefaultTokenDays is the validity of an agent's token, and of one of a provider's person, unless the request sets
// another.
const DefaultTokenDays = 90

// wantedToken returns the token that a request is about.
func (a TokenActs) wantedToken(call operation.Call, in TokenRequest) WantedToken {
	w := WantedToken{Name: in.Name, MaxTier: cmp.Or(in.MaxTier, 1), Scopes: in.Scopes, Agent: in.Agent, Repos: in.Repos,
		DryRun: in.DryRun, ReadOnly: in.ReadOnly}
	if in.Days == 0 && (in.Agent || call.Caller.Person.SignedIn()) {
		in.Days = DefaultTokenDays
	}
	if in.Days > 0 {
		w.ExpiresAt = a.Now().AddDate(0, 0, in.Days)
	}
	return w
}

// WantedToken is a token of any kind to make.
type WantedToken struct {
	Name      string         `json:"name"`
	MaxTier   int            `json:"max_tier"`
	Scopes    []access.Scope `json:"scopes,omitempty"`    // none for an agent's
	Agent     bool           `json:"agent,omitempty"`     // lets an agent in over MCP, and opens nothing else
	ExpiresAt time.Time      `json:"expires_at,omitzero"` // zero: good until it is revoked
	Repos     []string       `json:"repos,omitempty"`     // that an agent's is for; none for those that the server allows
	DryRun    bool           `json:"dry_run,omitempty"`   // an agent's: nothing is written
	ReadOnly  bool           `json:"read_only,omitempty"` // an agent's: nothing is proposed
}

// TokenEntry is a token without its secret.
type TokenEntry struct {
	ID        string        `json:"id"`
	Name      string        `json:"name"`
	MaxTier   int           `json:"max_tier"`
	Scopes    access.Scopes `json:"scopes"`
	CreatedAt time.Time     `json:"created_at"`
	RevokedAt *time.Time    `json:"revoked_at,omitempty"`
	ExpiresAt *time.Time    `json:"expires_at,omitempty"`
	Agent     bool          `json:"agent,omitempty" doc:"Lets an agent in over MCP, and opens nothing else"`
	Repos     []string      `json:"repos,omitempty" doc:"The repositories that an agent's token is for; absent for those that the server allows"`
	DryRun    bool          `json:"dry_run,omitempty" doc:"What the agent does is checked, and nothing written"`
	ReadOnly  bool          `json:"read_only,omitempty" doc:"The agent can propose and write nothing"`
	Owner     string        `json:"owner,omitempty" doc:"The person whose it is, who signs in by a provider: it may do no more than they may" example:"gitea:ann"`
	Client    string        `json:"client,omitempty" doc:"The program that a person let in by consent in a browser, as it calls itself" example:"Claude Code"`
	Domain    string        `json:"client_domain,omitempty" doc:"The host that vouches for that program, by a document of its own; without it the program has registered itself" example:"claude.ai"`
	UsedAt    *time.Time    `json:"used_at,omitempty" doc:"When it was last used, to some minutes"`
}

// TokenList is every token, oldest first.
type TokenList struct {
	Tokens []TokenEntry `json:"tokens"`
}

// TokenMade is a new token.
type TokenMade struct {
	TokenEntry
	Token string `json:"token" redact:"never" doc:"The secret. It is shown this once"`
}

// RevokeRequest names a token.
type RevokeRequest struct {
	ID string `json:"id" path:"id" id:"token" doc:"Name or ID of the token"`
}

// TokenRevoked names a token that is useless now.
type TokenRevoked struct {
	Revoked string `json:"revoked"`
}

// TokenEntryOf returns a token without its secret.
func TokenEntryOf(t access.Token) TokenEntry {
	e := TokenEntry{ID: t.ID, Name: t.Name, MaxTier: int(t.MaxTier), Scopes: append(access.Scopes{}, t.Scopes...),
		CreatedAt: t.CreatedAt.UTC(), Agent: t.Agent, Repos: t.Repos, DryRun: t.DryRun,
		ReadOnly: t.ReadOnly}
	e.Owner, e.Client, e.Domain = t.OwnerName, t.Client, access.ClientDomain(t.ClientID)
	if !t.UsedAt.IsZero() {
		used := t.UsedAt.UTC()
		e.UsedAt = &used
	}
	if !t.ExpiresAt.IsZero() {
		expires := t.ExpiresAt.UTC()
		e.ExpiresAt = &expires
	}
	if !t.RevokedAt.IsZero() {
		revoked := t.RevokedAt.UTC()
		e.RevokedAt = &revoked
	}
	return e
}

// Describe returns a token as the audit has it.
func (e TokenEntry) Describe() string {
	what := "scopes " + strings.ReplaceAll(e.Scopes.String(), ",", ", ")
	if e.Agent {
		what = "for an agent, over MCP alone"
		if len(e.Repos) > 0 {
			what += ", for " + strings.Join(e.Repos, ", ")
		}
		for _, lowered := range e.lowered() {
			what += ", " + lowered
		}
	}
	if e.ExpiresAt != nil {
		what += ", until " + e.ExpiresAt.Format(time.RFC3339)
	}
	if e.Owner != "" {
		what += ", of " + e.Owner
	}
	return fmt.Sprintf("token %s (%s): at most tier %d, %s", e.Name, e.ID, e.MaxTier, what)
}

// lowered says what an agent's token takes away.
func (e TokenEntry) lowered() (out []string) {
	if e.DryRun {
		out = append(out, "in a dry run")
	}
	if e.ReadOnly {
		out = append(out, "read-only")
	}
	return out
}

// TokensAtTerminal is the JSON of a token there, which has every member and the scopes as one text.
type TokensAtTerminal struct {
	TokenEntry
	Scopes    string     `json:"scopes"`
	RevokedAt *time.Time `json:"revoked_at"`
	ExpiresAt *time.Time `json:"expires_at"`
	Agent     bool       `json:"agent"`
	Token     string     `json:"token,omitempty"`
}

// AtTerminal returns the token as the terminal has it.
func (e TokenEntry) AtTerminal(secret string) TokensAtTerminal {
	return TokensAtTerminal{TokenEntry: e, Scopes: e.Scopes.String(), RevokedAt: e.RevokedAt, ExpiresAt: e.ExpiresAt,
		Agent: e.Agent, Token: secret}
}

func (a TokenActs) listOperation() operation.Operation {
	return operation.Operation{
		Name: "list_tokens", Summary: "List tokens, revoked ones included", Effect: operation.Read, Command: "token list",
		Needs: operation.Needs{For: operation.People, Scope: access.Operate},
		Route: operation.Route{Method: "GET", Path: "/tokens", ID: "listTokens"},
		Shown: operation.Shown{Fresh: true, View: a.tokensView, JSON: func(out any) any {
			list := struct {
				Tokens []TokensAtTerminal `json:"tokens"`
			}{[]TokensAtTerminal{}}
			for _, e := range out.(TokenList).Tokens {
				entry := e.AtTerminal("")
				if e.Agent {
					entry.Scopes = "agent"
				}
				list.Tokens = append(list.Tokens, entry)
			}
			return list
		}},
	}
}

func created() operation.Operation {
	return operation.Operation{
		Name: "create_token", Action: "token.create", Summary: "Make a token", Effect: operation.Write,
		Command: "token create",
		Needs:   operation.Needs{For: operation.People, Scope: access.Operate, Dry: operation.DryDone},
		Route: operation.Route{
			Method: "POST", Path: "/tokens", ID: "createToken", Status: 201, MaxBody: 16 << 10,
			TooLarge: "name fewer repositories",
			Notes:    "Nobody gives a scope or a tier that they have not. Only the hash of the secret is kept.",
		},
	}
}

func revoked() operation.Operation {
	return operation.Operation{
		Name: "revoke_token", Action: "token.revoke", Summary: "Revoke a token, with the logins and the tokens made with it, at once",
		Effect:  operation.Write,
		Command: "token revoke", Needs: operation.Needs{For: operation.People, Scope: access.Operate, Dry: operation.DryDone},
		Route: operation.Route{Method: "POST", Path: "/tokens/{id}/revoke", ID: "revokeToken",
			Notes: "id is the token's id or its name."},
		Shown: operation.Shown{
			Fresh: true, Short: "Revoke a token, with the logins and the tokens made with it, at once",
			Help: "ID is the token's id or its name.",
			Said: func(out any, _ bool) string { return "Revoked " + out.(TokenRevoked).Revoked + "." },
		},
	}
}

// tokensView returns the list as the terminal has it.
func (a TokenActs) tokensView(out any) operation.View {
	v := operation.View{Table: [][]string{{"ID", "NAME", "MAX TIER", "SCOPES", "MADE", "STATE", "ENDS"}},
		Empty: "No token was made yet.", Text: []string{"SCOPES"}, Goes: []string{"MADE", "MAX TIER"}}
	for _, e := range out.(TokenList).Tokens {
		state, ends, scopes := "Good", e.ExpiresAt, e.Scopes.String()
		switch {
		case e.RevokedAt != nil:
			state, ends = "Revoked", e.RevokedAt
		case e.ExpiresAt != nil && !a.Now().Before(*e.ExpiresAt):
			state = "Expired"
		}
		if ends == nil {
			ends = new(time.Time)
		}
		if e.Agent {
			scopes = strings.Join(slices.Concat([]string{"agent"}, e.lowered(), e.Repos), " ")
		}
		v.Table = append(v.Table, []string{e.ID, e.Name, fmt.Sprint(e.MaxTier), scopes, e.CreatedAt.Format(time.RFC3339),
			state, operation.TimeCell(*ends)})
	}
	return v
}

func (a TokenActs) list(ctx context.Context, _ operation.Call, _ struct{}) (TokenList, error) {
	all, err := a.Store().Tokens(ctx)
	list := TokenList{Tokens: []TokenEntry{}}
	for _, t := range all {
		list.Tokens = append(list.Tokens, TokenEntryOf(t))
	}
	return list, err
}

// createToken makes a token and returns it with its secret, which cannot be read again.
//
// Errors: invalid_argument for a name, tier or scope that is none, forbidden for what the caller lacks, conflict for a
// name that another good token has.
func (a TokenActs) createToken(ctx context.Context, call operation.Call, w WantedToken) (TokenMade, error) {
	scopes, err := w.scopes()
	if err == nil {
		err = w.checkLimits()
	}
	tier := gitprovider.Tier(w.MaxTier)
	lacks := call.Scopes.Lacks(scopes)
	switch {
	case err != nil:
		return TokenMade{}, fault.New(fault.InvalidArgument, "%s", err)
	case tier < gitprovider.TierObserve || tier > gitprovider.TierRemediate:
		return TokenMade{}, fault.New(fault.InvalidArgument, "the highest tier of a token is 1, 2 or 3")
	case a.reserved(w.Name):
		return TokenMade{}, fault.New(fault.InvalidArgument,
			"%s is a name that the record has for other callers; choose another one", w.Name)
	case !goodName(w.Name):
		return TokenMade{}, fault.New(fault.InvalidArgument,
			"the name of a token must be 1 to %d bytes without control characters", MaxTokenName)
	case len(lacks) > 0:
		return TokenMade{}, fault.New(fault.Forbidden, "you have not the scope %s yourself, and cannot give it to a token", lacks)
	case tier > call.Ceiling:
		return TokenMade{}, fault.New(fault.Forbidden, "you have tier %s at most, and cannot give tier %s", call.Ceiling,
			tier)
	}
	if w.Agent {
		if err := call.Scopes.MayGive(call.Caller.String(), tier, w.ReadOnly); err != nil {
			return TokenMade{}, err
		}
	}
	secret, err := access.NewSecret(a.Random)
	if err != nil {
		return TokenMade{}, err
	}
	t := access.Token{ID: a.NewID(), Name: w.Name, Hash: access.Hash(secret), MaxTier: tier, Scopes: scopes,
		CreatedAt: a.Now(), ExpiresAt: w.ExpiresAt, Agent: w.Agent, Repos: w.Repos,
		DryRun: w.DryRun, ReadOnly: w.ReadOnly, Grantor: call.Caller.TokenHash}
	if t.Maker = call.Caller.Actor; t.Maker.Person.SignedIn() {
		t.Owner, t.OwnerName = t.Maker.Person.Account(), t.Maker.Person.Name
	}
	made := TokenMade{TokenEntryOf(t), secret}
	if err := a.Store().InsertToken(ctx, t, call.Done(made.Describe())); err != nil {
		return TokenMade{}, err
	}
	return made, nil
}

func (a TokenActs) reserved(name string) bool {
	if a.Providers == nil {
		return access.Reserved(name)
	}
	return access.Reserved(name, a.Providers()...)
}

func (w WantedToken) scopes() (access.Scopes, error) {
	if w.Agent && len(w.Scopes) == 0 {
		return nil, nil
	}
	if w.Agent {
		return nil, fmt.Errorf("an agent's token has no scopes")
	}
	return access.ParseScopes(access.Scopes(w.Scopes).String())
}

// maxRepos bounds how many repositories a token names.
const maxRepos = 50

// checkLimits says what is wrong with what a token is to be limited to.
func (w WantedToken) checkLimits() error {
	switch {
	case len(w.Repos) > 0 && !w.Agent:
		return fmt.Errorf("only an agent's token names repositories")
	case (w.DryRun || w.ReadOnly) && !w.Agent:
		return fmt.Errorf("only an agent's token is in a dry run or read-only; scopes say what any other may do")
	}
	return CheckRepos(w.Repos)
}

// CheckRepos says what is wrong with repositories that an agent's token is to be for; nil for nothing.
func CheckRepos(repos []string) error {
	if len(repos) > maxRepos {
		return fmt.Errorf("a token names at most %d repositories; a pattern such as owner/* stands for many", maxRepos)
	}
	for _, r := range repos {
		if _, err := policy.ParseRepoPattern(r); err != nil || strings.ContainsFunc(r, unicode.IsSpace) ||
			len(r) > maxRepoPattern {
			return fmt.Errorf("%.100q names no repository; owner/name, owner/* or gitea:owner/name does", r)
		}
	}
	return nil
}

// maxRepoPattern bounds one of them, in bytes.
const maxRepoPattern = 200

func goodName(name string) bool {
	return name != "" && len(name) <= MaxTokenName && utf8.ValidString(name) && textscan.Clean(name,
		MaxTokenName) == name &&
		!strings.ContainsFunc(name, unicode.IsControl) && strings.TrimSpace(name) == name
}

// revoke makes a good token, by its id or name, and the logins made with it useless from now on. not_found if there is
// none, invalid_argument for what may be the secret of one.
func (a TokenActs) revoke(ctx context.Context, call operation.Call, in RevokeRequest) (TokenRevoked, error) {
	if strings.HasPrefix(in.ID, access.TokenPrefix) {
		return TokenRevoked{}, fault.New(fault.InvalidArgument, "give the name or the id of the token, and never its secret")
	}
	return TokenRevoked{in.ID}, a.Store().RevokeToken(ctx, in.ID, func(made []string) record.Attempt {
		message := "token " + in.ID
		if len(made) > 0 {
			message += ", and what was made with it: " + strings.Join(made, ", ")
		}
		return call.Done(message)
	})
}
