package oauth

import (
	"context"
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/agents/tokens"
	"github.com/claudeops/claudeops/internal/base/content"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
)

// Names of the acts of people. They have the page that asks alone, since a person has to have seen it.
const (
	OpAllow = "allow_client"
	OpDeny  = "deny_client"
)

// maxPerson bounds the person's part of the name of a token, in runes.
const maxPerson = 36

// Allow is a person's consent. The consent page makes it of a Request and of the person's choice.
type Allow struct {
	Request Request  `json:"-"`
	Tier    int      `json:"max_tier"`
	Repos   []string `json:"repos,omitempty"`
	DryRun  bool     `json:"dry_run,omitempty"`
}

// Code is the authorization code that the program gets after a person's consent.
type Code struct {
	Code string `json:"code" redact:"never"`
}

// Deny is a person's refusal.
type Deny struct {
	Request Request `json:"-"`
}

// Operations returns the operations for people.
func (s *Service) Operations() []operation.Operation {
	act := func(name, action, summary string, scope access.Scope) operation.Operation {
		return operation.Operation{Name: name, Action: action, Summary: summary, Effect: operation.Write,
			Needs: operation.Needs{For: operation.Person, Scope: scope, Dry: operation.DryDone}}
	}
	allow := act(OpAllow, ActionAllow, "Let a program in as an agent", access.Operate)
	allow.Needs.Policy = true // no new consent while the rules cannot be read
	return []operation.Operation{
		operation.Define(s.Kernel, "", allow, operation.Way[Allow]{}, s.allow),
		operation.Define(s.Kernel, "", act(OpDeny, ActionDeny, "Do not let a program in", access.Read),
			operation.Way[Deny]{}, s.deny),
	}
}

// Highest returns the highest tier that a person may give.
func (s *Service) Highest(ceiling gitprovider.Tier) gitprovider.Tier {
	return max(min(ceiling, s.MaxTier()), gitprovider.TierObserve)
}

// allow makes a code.
//
// Errors: forbidden for what the person may not give, invalid_argument for a tier or repositories that are none.
func (s *Service) allow(ctx context.Context, call operation.Call, in Allow) (Code, error) {
	tier, c := gitprovider.Tier(in.Tier), in.Request.Client
	switch err := tokens.CheckRepos(in.Repos); {
	case !call.Scopes.Has(access.Operate):
		return Code{}, fault.New(fault.Forbidden, "letting a program in needs the scope operate; %s has %s",
			call.Caller, call.Scopes)
	case err != nil:
		return Code{}, fault.New(fault.InvalidArgument, "%s", err)
	case tier < gitprovider.TierObserve || tier > gitprovider.TierRemediate:
		return Code{}, fault.New(fault.InvalidArgument, "choose a tier")
	case tier > s.Highest(call.Ceiling):
		return Code{}, fault.New(fault.Forbidden, "you can give tier %s at most, and not tier %s",
			s.Highest(call.Ceiling), tier)
	case len(call.Scopes.Lacks(access.ScopesOfAgent(tier, false))) > 0:
		return Code{}, fault.New(fault.Forbidden, "an agent of tier %s reads, and proposes from tier 2 on; %s has %s", tier,
			call.Caller, call.Scopes)
	}
	code, err := s.secret()
	if err != nil {
		return Code{}, err
	}
	name := content.Clean(call.Caller.String(), maxPerson) + " by " + c.Name
	kept := access.Code{
		Hash: access.Hash(code), ClientID: c.ID, Redirect: in.Request.Redirect, Challenge: in.Request.Challenge,
		Token: access.Token{Name: name, MaxTier: tier, Repos: in.Repos, DryRun: in.DryRun, Maker: call.Caller.Actor,
			Grantor: call.Caller.TokenHash},
		ExpiresAt: s.Now().Add(CodeLife),
	}
	if who := call.Caller.Person; who.SignedIn() {
		kept.Token.Owner = who.Account()
	}
	row := call.Done(fmt.Sprintf("%s: at most tier %s, for %s; browser sent back to %s", describe(c), tier,
		limitsOf(in.Repos, in.DryRun), in.Request.Redirect))
	return Code{code}, s.Store().InsertCode(ctx, kept, s.Now().Add(-codeKept), row)
}

func (s *Service) deny(ctx context.Context, call operation.Call, in Deny) (struct{}, error) {
	return struct{}{}, s.Record(ctx, call.Done(describe(in.Request.Client)))
}

// describe returns a program for the record.
func describe(c access.Client) string { return fmt.Sprintf("%s (client %s)", c.Name, c.ID) }

func limitsOf(repos []string, dryRun bool) string {
	limits := strings.Join(repos, ", ")
	if len(repos) == 0 {
		limits = "every repository that the server allows"
	}
	if dryRun {
		limits += ", in a dry run"
	}
	return limits
}
