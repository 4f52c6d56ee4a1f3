// Package policy holds the operator's rules: the embedded default, and an optional YAML file that changes it.
//
// A policy may widen the scope within the form that gitprovider.ParsePath accepts, and may tighten everything. It
// cannot allow git's own files, traversal or the policy file itself, nor raise a tier above its built-in limits.
package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/settings/sources"
)

// Defaults and bounds of the limits. Sizes are in bytes.
const (
	defaultMaxFileBytes  = 256 << 10
	defaultMaxTotalBytes = 1 << 20
	maxTotalBytes        = 3 << 20 // what fits into one MCP message of 4 MiB together with its quoting
)

// Policy is the effective set of rules. It is immutable after loading.
type Policy struct {
	Source  string // file that it came from, or "embedded default"
	Scope   gitprovider.Scope
	Tiers   gitprovider.TierLimits
	Targets Targets
	Limits  Limits
	Text    Text
	Labels  []string     // always begins with gitprovider.LabelOurs
	Pulls   PullRequests // what they get beside labels
	// RemindAfter is how long nobody may act on a pull request before people are reminded of it; 0: they are not.
	RemindAfter time.Duration
	// CloseAfter is how long nobody may act on a pull request until it is closed; 0, the default: it never is. It is at
	// least a day more than RemindAfter, so that people are reminded first.
	CloseAfter time.Duration
	Duplicates Duplicates // whose open pull requests keep a change of the same files off
	Revisions  Revisions  // commits that an agent adds to its open pull requests
	Server     Server     // what holds for the server itself, whatever is proposed
	Agents     Agents     // what holds for agents beside their proposals
	People     People     // what holds for people who sign in
	Facts      FactRules  // what facts of a proposal do
	Checkers   []Checker  // programs of the operator that look at each proposal
}

// Server holds the rules for the server itself, independent of any proposal.
type Server struct {
	NotifyRefused bool         // whether people are notified of refusals, too
	DryRun        *bool        // true: everything is checked and nothing written; false has no effect, nil says nothing
	ReadOnly      *bool        // the same for refusing every proposal
	RequireSink   bool         // nothing is proposed unless every head of the audit was exported before
	Sources       sources.List // places that files of projects may choose from; see docs/guides/sources.md
	// SessionTranscripts is how long what agents said and did in sessions is kept; 0 means for ever.
	SessionTranscripts time.Duration
}

// Agents are rules for agents beside those of their proposals.
type Agents struct {
	ToolTiers []ToolTier // of tools whose lowest tier the policy raises, by name
	// RequireBoundary refuses sessions without a boundary that lacks nothing.
	RequireBoundary bool
	Hooks           []Hook // templates of sessions that other programs start, by name
}

// Targets are the repositories and branches that proposals may be made for.
type Targets struct {
	Repositories    []RepoPattern // of the file; empty: every repository that a provider serves
	EnvRepositories []RepoPattern // of CLAUDEOPS_REPOS; a repository must be on both lists
	// CallersRepositories are the repositories that the caller's token is for; empty: it names none. A repository must be
	// on this list, too.
	CallersRepositories []RepoPattern
	BaseBranches        []string  // patterns; empty: the default branch, or the one that the manifest names
	Pins                []RepoPin // what holds for single repositories, whatever their manifests say
	AllowForks          bool      // whether a repository that is a fork may be targeted
}

// Limits bound a proposal, and how many there may be.
type Limits struct {
	MaxFileBytes  int
	MaxTotalBytes int
	Caps          Caps
	TierCaps      map[gitprovider.Tier]Caps // per tier, where the policy says so; never looser than Caps
	Cooldown      time.Duration             // how long a rejected change blocks its paths; 0: not at all
	CooldownLabel string                    // ends the cooldown of a closed pull request that has it; "" for none
}

// Revisions bound how often an agent may add to one pull request, and when.
type Revisions struct {
	Max    int  // for each pull request; 0: never
	Always bool // also without a review or a comment since the last one
	// Once lets the agent correct a pull request once before anybody has looked at it.
	Once bool
	// OnChecks lets failing checks of the head ask for one as a review does.
	OnChecks bool
}

// Text holds the rules for titles and bodies of proposals.
type Text struct {
	RequiredSections []string // headings that a pull request's body must have
	Mentions         []string // names that a proposal may mention with @, lower case
	ClosingKeywords  bool     // whether "fixes #1" may close issues
}

// Caps bound how many pull requests the agents may have open and create, per repository.
type Caps struct {
	OpenPRs          int `json:"open_prs"`
	CreationsPerHour int `json:"creations_per_hour"`
}

// Defaults of caps and cooldown (design §3, gates 8 and 9), and the largest values that a policy may set.
const (
	defaultOpenPRs          = 10
	defaultCreationsPerHour = 20
	defaultCooldown         = 24 * time.Hour
	defaultRevisions        = 5
	maxCap                  = 1000
	maxRevisions            = 50
	maxCooldown             = 90 * 24 * time.Hour
	// defaultSessionTranscripts is finite: what sessions said is by far the most of what is recorded.
	defaultSessionTranscripts = 30 * 24 * time.Hour
)

// CapsFor returns the caps that hold for a tier.
func (p Policy) CapsFor(t gitprovider.Tier) Caps {
	if own, ok := p.Limits.TierCaps[t]; ok {
		return Caps{
			OpenPRs:          min(own.OpenPRs, p.Limits.Caps.OpenPRs),
			CreationsPerHour: min(own.CreationsPerHour, p.Limits.Caps.CreationsPerHour),
		}
	}
	return p.Limits.Caps
}

// Default returns the embedded policy.
func Default() Policy {
	return Policy{
		Source: "embedded default", Scope: gitprovider.DefaultScope(), Tiers: gitprovider.DefaultTierLimits(),
		Limits: Limits{
			MaxFileBytes: defaultMaxFileBytes, MaxTotalBytes: defaultMaxTotalBytes,
			Caps:     Caps{OpenPRs: defaultOpenPRs, CreationsPerHour: defaultCreationsPerHour},
			Cooldown: defaultCooldown,
		},
		Labels: []string{gitprovider.LabelOurs, "automated"}, Duplicates: DuplicatesOurs,
		Revisions:   Revisions{Max: defaultRevisions, OnChecks: true, Once: true},
		Server:      Server{SessionTranscripts: defaultSessionTranscripts},
		RemindAfter: defaultRemindAfter,
	}
}

// RepoPattern is one entry of the repository allowlist: owner/name with globs in either part, optionally pinned to a
// provider as in gitea:joe/home-cluster.
type RepoPattern struct{ Provider, Owner, Name string }

// ParseRepoPattern reads an allowlist entry.
func ParseRepoPattern(s string) (RepoPattern, error) {
	provider, rest, pinned := strings.Cut(s, ":")
	if !pinned {
		provider, rest = "", s
	}
	owner, name, ok := strings.Cut(rest, "/")
	if !ok || owner == "" || name == "" || strings.Contains(name, "/") || pinned && provider == "" ||
		!doublestar.ValidatePattern(owner) || !doublestar.ValidatePattern(name) {
		return RepoPattern{}, fmt.Errorf("%q is not of the form owner/name or provider:owner/name", s)
	}
	return RepoPattern{strings.ToLower(provider), owner, name}, nil
}

// Matches reports whether the entry covers the repository. Letter case does not count, as on the forges.
func (r RepoPattern) Matches(provider, owner, name string) bool {
	if r.Provider != "" && r.Provider != provider {
		return false
	}
	return matchFold(r.Owner, owner) && matchFold(r.Name, name)
}

// String returns the entry as it is written in configuration.
func (r RepoPattern) String() string {
	if r.Provider == "" {
		return r.Owner + "/" + r.Name
	}
	return r.Provider + ":" + r.Owner + "/" + r.Name
}

// Pin returns the entry as a pin, if it names a provider and one repository.
func (r RepoPattern) Pin() (gitprovider.Pin, bool) {
	if r.Provider == "" || strings.ContainsAny(r.Owner+r.Name, "*?[{") {
		return gitprovider.Pin{}, false
	}
	return gitprovider.Pin{Provider: r.Provider, Owner: r.Owner, Name: r.Name}, true
}

func matchFold(pattern, s string) bool {
	ok, _ := path.Match(strings.ToLower(pattern), strings.ToLower(s))
	return ok
}

// AllowsRepo reports whether proposals to the repository are allowed, and by which entry.
func (p Policy) AllowsRepo(provider, owner, name string) (rule string, ok bool) {
	rule = "no allowlist"
	for _, list := range [][]RepoPattern{p.Targets.Repositories, p.Targets.EnvRepositories,
		p.Targets.CallersRepositories} {
		if len(list) == 0 {
			continue
		}
		at := slices.IndexFunc(list, func(r RepoPattern) bool { return r.Matches(provider, owner, name) })
		if at < 0 {
			return "", false
		}
		rule = list[at].String()
	}
	return rule, true
}

// AllRepositories lists the entries of all allowlists.
func (p Policy) AllRepositories() []RepoPattern {
	return slices.Concat(p.Targets.Repositories, p.Targets.EnvRepositories, p.Targets.CallersRepositories)
}

// AllowsBase reports whether a pull request may target base. Without a list only the repository's default branch and
// the branch that its mounted manifest declares are allowed; with a list, base must match it, the default branch too.
func (p Policy) AllowsBase(base, defaultBranch, manifestBase string) bool {
	if len(p.Targets.BaseBranches) == 0 {
		return base == defaultBranch || manifestBase != "" && base == manifestBase
	}
	return slices.ContainsFunc(p.Targets.BaseBranches, func(pattern string) bool {
		ok, _ := doublestar.Match(pattern, base)
		return ok
	})
}

// View is a policy as people and programs read it.
type View struct {
	Source           string    `json:"source"`
	Hash             string    `json:"hash"`
	Allow            []string  `json:"allow"`
	Deny             []string  `json:"deny"`
	Kinds            []Kind    `json:"kinds" doc:"Kinds of files that may be proposed beside, if their validators accept them"`
	Tier2MaxFiles    int       `json:"tier2_max_files"`
	Tier3MaxFiles    int       `json:"tier3_max_files"`
	Repositories     []string  `json:"repositories"`
	BaseBranches     []string  `json:"base_branches"`
	Pins             []RepoPin `json:"pins"`
	MaxFileBytes     int       `json:"max_file_bytes"`
	MaxTotalBytes    int       `json:"max_total_bytes"`
	OpenPRs          int       `json:"open_prs"`
	CreationsPerHour int       `json:"creations_per_hour"`
	CooldownHours    float64   `json:"cooldown_hours"`
	CooldownLabel    string    `json:"cooldown_lift_label"`
	Revise           string    `json:"revise" enum:"reviewed,once,always"`
	MaxRevisions     int       `json:"max_revisions"`
	ReviseOnChecks   bool      `json:"revise_on_checks"`
	Labels           []string  `json:"labels"`
	RequiredSections []string  `json:"required_body_sections"`
	Mentions         []string  `json:"mentions"`
	ClosingKeywords  bool      `json:"closing_keywords"`
	NotifyRefused    bool      `json:"notify_refused"`
	RequireSink      bool      `json:"require_sink" doc:"Nothing is proposed unless the audit was exported to every sink before"`
	Tier2Caps        Caps      `json:"tier2_caps"`
	Tier3Caps        Caps      `json:"tier3_caps"`
	AllowForks       bool      `json:"allow_forks"`

	Facts    map[string]string `json:"facts" doc:"Classes of facts that are acknowledged or refuse; others are shown"`
	Checkers []string          `json:"checkers" doc:"Names of the operator's checkers"`
	Hooks    []string          `json:"hooks" doc:"Which programs may start sessions, at which tier and how often"`

	Duplicates   Duplicates   `json:"duplicates"`
	PullRequests PullRequests `json:"pull_requests"`
	ToolTiers    []ToolTier   `json:"tool_tiers" doc:"Tools of toolsets whose lowest tier the policy raises"`

	DryRun   bool `json:"dry_run" doc:"The policy switches the dry run on, whatever other settings say"`
	ReadOnly bool `json:"read_only" doc:"The policy refuses every proposal, whatever other settings say"`

	RequireBoundary bool `json:"require_boundary" doc:"No session starts without a boundary that lacks nothing"`

	Sources sources.List `json:"sources" doc:"Places that files of projects may choose from"`

	RemindAfter string `json:"remind_after" doc:"How long nobody may act on a pull request before people are reminded of it; 0: they are not"`
	CloseAfter  string `json:"close_after" doc:"How long nobody may act on a pull request until it is closed; 0: it never is"`

	SessionTranscripts string `json:"session_transcripts" doc:"Age at which what agents said in sessions is removed; 0: it is kept"`

	Roles    []RoleRule `json:"roles" doc:"What people may do who sign in at a provider of identities, the highest first"`
	FourEyes bool       `json:"four_eyes" doc:"Who started something does not approve or merge what came of it"`
}

// Kind is a kind of files that a toolset understands.
type Kind struct {
	Name     string           `json:"name"`
	Patterns []string         `json:"patterns"`
	Tier     gitprovider.Tier `json:"tier" doc:"The lowest tier that may propose them"`
}

func (p Policy) kinds() []Kind {
	out := []Kind{}
	for _, kind := range p.Scope.Kinds() {
		out = append(out, Kind{kind.Name, kind.Patterns, kind.LowestTier()})
	}
	return out
}

// View renders the policy. Lists are never null.
func (p Policy) View() View {
	v := View{
		Source: p.Source, Hash: p.Hash(), Allow: p.Scope.Allow(), Deny: p.Scope.Deny(), Kinds: p.kinds(),
		Tier2MaxFiles: p.Tiers.MaxFiles(gitprovider.TierInvestigate),
		Tier3MaxFiles: p.Tiers.MaxFiles(gitprovider.TierRemediate),
		Repositories:  []string{}, BaseBranches: append([]string{}, p.Targets.BaseBranches...),
		Pins:         append([]RepoPin{}, p.Targets.Pins...),
		MaxFileBytes: p.Limits.MaxFileBytes, MaxTotalBytes: p.Limits.MaxTotalBytes,
		OpenPRs: p.Limits.Caps.OpenPRs, CreationsPerHour: p.Limits.Caps.CreationsPerHour,
		CooldownHours: p.Limits.Cooldown.Hours(),
		CooldownLabel: p.Limits.CooldownLabel, Revise: p.Revisions.when(), MaxRevisions: p.Revisions.Max,
		ReviseOnChecks: p.Revisions.OnChecks,
		Labels:         append([]string{}, p.Labels...), RequiredSections: append([]string{}, p.Text.RequiredSections...),
		Mentions: append([]string{}, p.Text.Mentions...), ClosingKeywords: p.Text.ClosingKeywords,
		NotifyRefused: p.Server.NotifyRefused, RequireSink: p.Server.RequireSink,
		Tier2Caps: p.CapsFor(gitprovider.TierInvestigate), Tier3Caps: p.CapsFor(gitprovider.TierRemediate),
		AllowForks: p.Targets.AllowForks, Facts: p.Facts.fileForm(), Checkers: p.checkerNames(), Hooks: p.Agents.hookWords(),
		Duplicates:   p.Duplicates,
		PullRequests: p.Pulls.withoutNulls(),
		ToolTiers:    append([]ToolTier{}, p.Agents.ToolTiers...), RequireBoundary: p.Agents.RequireBoundary,
		Sources: append(sources.List{}, p.Server.Sources...), Roles: append([]RoleRule{}, p.People.Roles...),
		FourEyes: p.People.FourEyes, SessionTranscripts: ageText(p.Server.SessionTranscripts),
		RemindAfter: ageText(p.RemindAfter), CloseAfter: ageText(p.CloseAfter),
		DryRun: p.Server.DryRun != nil && *p.Server.DryRun, ReadOnly: p.Server.ReadOnly != nil && *p.Server.ReadOnly,
	}
	for _, r := range p.AllRepositories() {
		v.Repositories = append(v.Repositories, r.String())
	}
	return v
}

// ageText returns an age as the policy file has it: in days where they are whole.
func ageText(age time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case age == 0:
		return "0"
	case age%day == 0:
		return strconv.Itoa(int(age/day)) + "d"
	}
	text := age.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-len(zero)+1]
		}
	}
	return text
}

// Hash identifies the effective rules, wherever they came from: 12 hex digits.
func (p Policy) Hash() string {
	rules := []any{
		p.Scope.Allow(), p.Scope.Deny(), p.Tiers, p.Targets.Repositories, p.Targets.EnvRepositories, p.Targets.BaseBranches,
		p.Targets.Pins,
		p.Limits.MaxFileBytes, p.Limits.MaxTotalBytes, p.Limits.Caps, p.CapsFor(2), p.CapsFor(3), p.Limits.Cooldown, p.Labels,
		p.Text.RequiredSections,
		p.Text.Mentions, p.Text.ClosingKeywords, p.Server.NotifyRefused, p.Pulls, p.Targets.AllowForks,
		p.Duplicates, p.Revisions, p.Limits.CooldownLabel,
	}
	if kinds := p.kinds(); len(kinds) > 0 { // otherwise the hash stays the same as before kinds existed
		rules = append(rules, kinds)
	}
	if len(p.Agents.ToolTiers) > 0 {
		rules = append(rules, p.Agents.ToolTiers)
	}
	if p.Agents.RequireBoundary {
		rules = append(rules, "require_boundary")
	}
	if len(p.Agents.Hooks) > 0 {
		rules = append(rules, "hooks", p.Agents.Hooks)
	}
	if p.RemindAfter != defaultRemindAfter {
		rules = append(rules, "stale.remind_after", p.RemindAfter)
	}
	if p.CloseAfter != 0 {
		rules = append(rules, "stale.close_after", p.CloseAfter)
	}
	if p.Server.RequireSink {
		rules = append(rules, "audit.require_sink")
	}
	if len(p.Server.Sources) > 0 {
		rules = append(rules, p.Server.Sources)
	}
	if p.Server.SessionTranscripts != defaultSessionTranscripts {
		rules = append(rules, "retention.session_transcripts", p.Server.SessionTranscripts)
	}
	if len(p.People.Roles) > 0 {
		rules = append(rules, p.People.Roles)
	}
	if len(p.Checkers) > 0 {
		rules = append(rules, "checkers", p.Checkers)
	}
	if view := p.Facts.fileForm(); len(view) > 0 { // json.Marshal sorts its keys
		rules = append(rules, "facts", view)
	}
	if p.People.FourEyes {
		rules = append(rules, "review.four_eyes")
	}
	if on := p.Server.DryRun; on != nil {
		rules = append(rules, "dry_run", *on)
	}
	if on := p.Server.ReadOnly; on != nil {
		rules = append(rules, "read_only", *on)
	}
	b, err := json.Marshal(rules)
	if err != nil { // strings and integers always marshal
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}

// RepoPin ties a repository to a provider, to a base branch, or to both, whatever its manifest says.
type RepoPin struct {
	Owner      string `json:"owner"`
	Name       string `json:"name"`
	Provider   string `json:"provider,omitempty"`    // "": not pinned
	BaseBranch string `json:"base_branch,omitempty"` // "": not pinned
}

// Matches reports whether the pin is about the repository. Letter case does not count, as on the forges.
func (p RepoPin) Matches(owner, name string) bool {
	return strings.EqualFold(p.Owner, owner) && strings.EqualFold(p.Name, name)
}

// String returns the pin for people.
func (p RepoPin) String() string {
	text := p.Owner + "/" + p.Name
	if p.Provider != "" {
		text += " at " + p.Provider
	}
	if p.BaseBranch != "" {
		text += " into " + p.BaseBranch
	}
	return text
}

type pinSection struct {
	Repository string `yaml:"repository"`
	Provider   string `yaml:"provider"`
	BaseBranch string `yaml:"base_branch"`
}

func (f policyFile) pins(p *Policy) error {
	for i, section := range f.Pins {
		pin, err := section.pin()
		if err != nil {
			return fmt.Errorf("pins[%d]: %w", i, err)
		}
		if other, found := p.PinFor(pin.Owner, pin.Name); found {
			return fmt.Errorf("pins[%d]: %s/%s is pinned twice; say all of it in one entry", i, other.Owner, other.Name)
		}
		p.Targets.Pins = append(p.Targets.Pins, pin)
	}
	return nil
}

func (s pinSection) pin() (RepoPin, error) {
	owner, name, _ := strings.Cut(s.Repository, "/")
	if gitprovider.CheckRepoPart(owner) != nil || gitprovider.CheckRepoPart(name) != nil {
		return RepoPin{}, fmt.Errorf("repository: %q is not of the form owner/name, without patterns", s.Repository)
	}
	pin := RepoPin{Owner: owner, Name: name, Provider: strings.ToLower(s.Provider), BaseBranch: s.BaseBranch}
	switch {
	case pin.Provider == "" && pin.BaseBranch == "":
		return pin, errors.New("it names neither provider nor base_branch")
	case strings.HasPrefix(pin.BaseBranch, gitprovider.BranchPrefix):
		return pin, fmt.Errorf("base_branch: %q would let proposals be stacked on the branches of other proposals",
			pin.BaseBranch)
	}
	return pin, nil
}

// PinFor returns the pin of a repository.
func (p Policy) PinFor(owner, name string) (pin RepoPin, found bool) {
	for _, pin := range p.Targets.Pins {
		if pin.Matches(owner, name) {
			return pin, true
		}
	}
	return RepoPin{}, false
}

// CheckAnswer says which paths may be proposed, and by which rule.
type CheckAnswer struct {
	Tier     int               `json:"tier"`
	Allowed  bool              `json:"allowed" doc:"The tier may propose all of them in one pull request, by path and number"`
	TierSays []fault.Violation `json:"tier_says" doc:"What speaks against it whatever the paths are"`
	Paths    []PathVerdict     `json:"paths"`
}

// PathVerdict is the answer for one path.
type PathVerdict struct {
	Path       string     `json:"path"`
	Allowed    bool       `json:"allowed"`
	Code       fault.Code `json:"code" doc:"Empty when allowed"`
	Rule       string     `json:"rule" doc:"The pattern that spoke, or canonical-path, not-in-allow-list, policy-file"`
	Message    string     `json:"message,omitempty"`
	Suggestion string     `json:"suggestion,omitempty"`
}

// CheckPaths says whether a tier may change the paths in one pull request, and by which rule.
func (p Policy) CheckPaths(tier gitprovider.Tier, paths []string) CheckAnswer {
	out := CheckAnswer{
		Tier: int(tier), TierSays: append([]fault.Violation{}, gitprovider.ValidateTier(p.Tiers, tier, len(paths))...),
		Paths: []PathVerdict{},
	}
	files, scope := make([]gitprovider.FileChange, len(paths)), p.Scope.At(tier)
	for i, path := range paths {
		files[i].Path = path
		v := scope.Check(path)
		verdict := PathVerdict{Path: path, Allowed: v.Allowed, Rule: v.Rule}
		if v.Reason != nil {
			verdict.Code, verdict.Message, verdict.Suggestion = v.Reason.Code, v.Reason.Message, v.Reason.Suggestion
		}
		out.Paths = append(out.Paths, verdict)
	}
	out.Allowed = len(out.TierSays) == 0 && len(gitprovider.ValidateScope(scope, files)) == 0
	return out
}
