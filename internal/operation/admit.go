package operation

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// Authority is what the operator permits callers to do.
type Authority struct {
	Enabled    func(toolset string) bool
	Tier       gitprovider.Tier
	AllowWrite bool // tools may write beyond the program's own folders
	DryRun     bool
	ReadOnly   string // why no tool may write; "" if one may
	Session    string // the agent's session that this process serves; "" for none
	// Least is the lowest tier that the operator's policy lets call a tool; a tool's own holds if it is higher. nil for
	// none.
	Least func(tool string) gitprovider.Tier
	Rules
}

// Rules are the rules for acts of people, beside a dry run.
type Rules struct {
	Policy policy.Policy
	// Problem says why the policy or CLAUDEOPS_REPOS cannot be read; "" if they can.
	Problem string
	Closed  bool // the process is read-only
}

// Listed reports whether tools/list shows a tool: what writes is shown only where it may.
func (k *Kernel) Listed(o Operation) bool {
	rules := k.CurrentAuthority()
	return o.Needs.CacheOnly || o.Effect != Write || rules.AllowWrite && rules.ReadOnly == "" &&
		rules.Tier >= rules.least(o)
}

// least returns the tier that a tool needs here.
func (a Authority) least(o Operation) gitprovider.Tier {
	if a.Least == nil {
		return o.Needs.Tier
	}
	return max(o.Needs.Tier, a.Least(o.Name))
}

// Tier returns the lower one of the server's and the caller's. A person's own credential alone says what they may.
func (k *Kernel) Tier(call Call) gitprovider.Tier { return k.CurrentAuthority().tier(call) }

func (a Authority) tier(call Call) gitprovider.Tier {
	if call.Person {
		return call.Ceiling
	}
	return min(a.Tier, call.Ceiling)
}

// admit asks of a tool what needs no arguments, but for yes, which is looked at before all others.
func (a *attempt) admit() *Fault {
	rules, needs := a.rules, a.op.Needs
	least := rules.least(a.op)
	tier := rules.tier(a.call)
	switch {
	case a.toolset != "" && !rules.Enabled(a.toolset):
		return newFault(ReasonDisabled, fault.NotFound,
			"the toolset %s is not enabled; the operator enables it with CLAUDEOPS_TOOLSETS", a.toolset)
	case needs.OwnGates:
		return nil
	case tier < least && a.call.Caller.Door == record.DoorCLI && a.call.Ceiling >= least:
		return newFault(ReasonTier, fault.TierDenied,
			"%s needs tier %s; this is tier %s. --tier %s or CLAUDEOPS_TIER=%s sets it", a.op.Name, least, tier, least, least)
	case tier < least:
		return newFault(ReasonTier, fault.TierDenied,
			"%s needs tier %s; this is tier %s. Do not try again: report what is needed, so that a person or a higher tier does it",
			a.op.Name, least, tier)
	case needs.Writable && rules.ReadOnly != "":
		return newFault(ReasonWriting, fault.ReadOnly, "%s", rules.ReadOnly)
	case needs.AllowWrite && !rules.AllowWrite && a.call.Caller.Door == record.DoorCLI:
		return newFault(ReasonWriting, fault.ReadOnly,
			"%s writes, which the operator has not allowed; CLAUDEOPS_ALLOW_WRITE=true does", a.op.Name)
	case needs.AllowWrite && !rules.AllowWrite:
		return newFault(ReasonWriting, fault.ReadOnly,
			"%s writes, which the operator has not allowed; CLAUDEOPS_ALLOW_WRITE=true or --allow-write does", a.op.Name)
	case a.dryRun && needs.Dry == DryRefused:
		return newFault(ReasonWriting, fault.ReadOnly, "this is a dry run, and %s cannot be tried without doing it", a.op.Name)
	case needs.Yes && !approved(a.call.Arguments):
		f := newFault(ReasonApproval, fault.InvalidArgument,
			"%s needs the argument yes: true, which says that its effect is wanted", a.op.Name)
		f.General.Violations = []fault.Violation{{Code: fault.InvalidArgument, Path: "yes", Message: "`yes` must be true"}}
		return f
	}
	return nil
}

// approved reports whether the arguments have yes: true. What else is wrong with them is found later.
func approved(arguments []byte) bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal(arguments, &fields) == nil && string(fields["yes"]) == "true"
}

// checkRules asks the operator's rules about an act of a person, whose target is known by now.
func (a *attempt) checkRules() *fault.Error {
	rules, needs := a.rules, a.op.Needs
	switch {
	case callerKind(a.call.Caller.Door)&needs.For == 0:
		return fault.New(fault.Forbidden, "%s is for people; no agent may do it", a.op.Name)
	case needs.Policy && rules.Problem != "":
		return fault.New(fault.ReadOnly, "%s; nobody may decide until the operator corrects it", rules.Problem)
	case needs.Writable && rules.Closed:
		return fault.New(fault.ReadOnly, "this process is read-only (CLAUDEOPS_READ_ONLY); run the command without that")
	case needs.Listed && !rules.allowsRepo(a.about()):
		return rules.notListed(a.about())
	case needs.OwnGates:
		return nil
	case a.op.Effect != Read && needs.Dry == DryRefused && rules.DryRun:
		return fault.New(fault.ReadOnly, "this process is in dry run (CLAUDEOPS_DRY_RUN) and changes nothing; do it without")
	}
	return nil
}

// admitAgain checks, after all waiting and before a handler that does more than read, whether the caller is still
// admitted, by the present rules.
func (a *attempt) admitAgain(ctx context.Context) error {
	if a.op.Effect == Read || a.op.Needs.OwnGates {
		return nil
	}
	if refused := a.judgeAgain(); refused != nil {
		return refused
	}
	err := a.call.Caller.Admitted(ctx)
	if err == nil || a.op.ForPeople() {
		return err
	}
	reason := ReasonOurs
	if fault.CodeOf(err).Refusal() {
		reason = ReasonWriting
	}
	return &Fault{Reason: reason, General: fault.From(err)}
}

// policyHash returns the hash of the policy that judges a call.
func (r Rules) policyHash() string {
	if r.Problem != "" {
		return record.PolicyUnreadable
	}
	return r.Policy.Hash()
}

// judgeAgain judges the call by the rules as they are now. A dry run that they switch on meanwhile holds, too.
func (a *attempt) judgeAgain() error {
	a.rules = a.kernel.CurrentAuthority()
	if a.rules.DryRun && !a.dryRun && a.op.Needs.Dry != DryDone {
		return newFault(ReasonWriting, fault.ReadOnly,
			"the server was put in dry run while the call waited, and nothing was done; make the call again")
	}
	if a.op.ForPeople() {
		if refused := a.checkRules(); refused != nil {
			return refused
		}
	} else if refused := a.admit(); refused != nil {
		return refused
	}
	return nil
}

// Reads returns repo_not_allowed for a repository that people may not read either; else nil.
func (r Rules) Reads(provider, owner, name string) error {
	t := Target{Provider: provider, Owner: owner, Name: name}
	if r.allowsRepo(t) {
		return nil
	}
	return r.notListed(t)
}

func (r Rules) allowsRepo(t Target) bool {
	_, ok := r.Policy.AllowsRepo(t.Provider, t.Owner, t.Name)
	return ok
}

func (r Rules) notListed(t Target) *fault.Error {
	var names []string
	for _, listed := range r.Policy.AllRepositories() {
		names = append(names, listed.String())
	}
	return fault.New(fault.RepoNotAllowed, "the repository %s/%s at %s is not on the operator's list (%s)", t.Owner,
		t.Name, t.Provider, strings.Join(names, ", "))
}

// Caller says who calls, and how to reach them while they wait.
type Caller struct {
	record.Actor
	// TokenHash is the hash of the token that was shown, or by which the person is signed in; "" for none. Tokens and
	// sessions that are made with it end with it.
	TokenHash string
	// Progress, if not nil, is called for each phase of a creation as it begins, and while a write takes long. It is never
	// called concurrently.
	Progress func(phase string)
	// Recheck asks the door again whether it would let the caller in, with no fewer rights than the call began with. nil
	// at doors without a credential, such as the command line. See Admitted.
	Recheck func(ctx context.Context) error
}

// Admitted is called after a call has waited, for a lock for example, and before its first write: the credential may
// have been revoked or have expired meanwhile, its rights may have been lowered, or the connection may have been cut
// off. The error is unauthenticated, forbidden or tier_denied then, and nothing may be written. If the check itself
// fails, its error is returned.
//
// It may write to the records, so it is not to be called within one of their transactions.
func (c Caller) Admitted(ctx context.Context) error {
	if c.Recheck == nil {
		return nil
	}
	return c.Recheck(ctx)
}
