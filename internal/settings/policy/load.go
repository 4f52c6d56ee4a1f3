package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/claudeops/claudeops/internal/base/strictyaml"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/settings/sources"
	"github.com/claudeops/claudeops/internal/system/files"
)

// maxPolicyBytes bounds a policy file.
const maxPolicyBytes = 1 << 20

// policyFile is the YAML form of a policy. Pointers tell an absent key from an empty value.
type policyFile struct {
	Version      int            `yaml:"version"`
	Scope        *scopeSection  `yaml:"scope"`
	Tiers        *tierSection   `yaml:"tiers"`
	Repositories []string       `yaml:"repositories"`
	BaseBranches []string       `yaml:"base_branches"`
	Pins         []pinSection   `yaml:"pins"`
	Limits       *limitSection  `yaml:"limits"`
	Caps         *capSection    `yaml:"caps"`
	Cooldown     *int           `yaml:"cooldown_hours"`
	CooldownLift string         `yaml:"cooldown_lift_label"`
	Revise       *string        `yaml:"revise"`
	MaxRevisions *int           `yaml:"max_revisions"`
	ReviseChecks *bool          `yaml:"revise_on_checks"`
	DryRun       *bool          `yaml:"dry_run"`
	ReadOnly     *bool          `yaml:"read_only"`
	Labels       []string       `yaml:"labels"`
	Pulls        *pullSection   `yaml:"pull_requests"`
	Forks        bool           `yaml:"allow_forks"`
	Duplicates   *string        `yaml:"duplicates"`
	Body         *bodySection   `yaml:"body"`
	Mentions     []string       `yaml:"mentions"`
	Closing      bool           `yaml:"closing_keywords"`
	Tools        *toolSection   `yaml:"tools"`
	Sources      sources.List   `yaml:"sources"`
	Roles        *roleSection   `yaml:"roles"`
	Review       *reviewSection `yaml:"review"`
	Notify       *struct {
		Refused bool `yaml:"refused"`
	} `yaml:"notify"`
	Audit *struct {
		RequireSink bool `yaml:"require_sink"`
	} `yaml:"audit"`
	Sessions *struct {
		RequireBoundary bool `yaml:"require_boundary"`
	} `yaml:"sessions"`
	Hooks     map[string]hookSection `yaml:"hooks"` // by name
	Facts     map[string]string      `yaml:"facts"` // by class; see FactRules
	Checkers  []checkerSection       `yaml:"checkers"`
	Retention *struct {
		SessionTranscripts *string `yaml:"session_transcripts"`
	} `yaml:"retention"`
	Stale *struct {
		RemindAfter *string `yaml:"remind_after"`
		CloseAfter  *string `yaml:"close_after"`
	} `yaml:"stale"`
}

type scopeSection struct {
	Allow           *[]string `yaml:"allow"`             // replaces the default allow list
	Deny            []string  `yaml:"deny"`              // is added to the default deny list
	DropDefaultDeny []string  `yaml:"drop_default_deny"` // entries of the default deny list that no longer hold
	Kinds           []string  `yaml:"kinds"`             // of files that toolsets understand; tier 3 may propose them
}

type tierSection struct {
	Tier2 *tierRules `yaml:"2"`
	Tier3 *tierRules `yaml:"3"`
}

type tierRules struct {
	MaxFiles   *int `yaml:"max_files"` // 0: the tier may not propose
	capSection `yaml:",inline"`
	Facts      map[string]string `yaml:"facts"` // beside those of all tiers; the stricter rule holds
	Kinds      []string          `yaml:"kinds"` // of scope.kinds that tier 2 may propose, too
}

type limitSection struct {
	MaxFileBytes  *int `yaml:"max_file_bytes"`
	MaxTotalBytes *int `yaml:"max_total_bytes"`
}

type capSection struct {
	OpenPRs          *int `yaml:"open_prs"`
	CreationsPerHour *int `yaml:"creations_per_hour"`
}

type bodySection struct {
	RequiredSections []string `yaml:"required_sections"`
}

// Load reads a policy file; with an empty name it returns the default. Every error names the file and, where YAML knows
// it, the line: an unknown or repeated key, a wrong type, a value that would loosen what cannot be loosened.
func Load(name string, kinds ...gitprovider.FileKind) (Policy, error) {
	if name == "" {
		return Default(), nil
	}
	text, err := readBounded(name)
	if err != nil {
		return Policy{}, err
	}
	return Parse(name, text, kinds...)
}

func readBounded(name string) ([]byte, error) {
	text, _, err := files.ReadPath(name, maxPolicyBytes)
	if errors.Is(err, files.ErrTooLarge) {
		return nil, fmt.Errorf("the policy file %s is larger than %d bytes", name, maxPolicyBytes)
	}
	if err != nil {
		var pathErr *fs.PathError
		if errors.As(err, &pathErr) {
			err = pathErr.Err
		}
		return nil, fmt.Errorf("the policy file %s cannot be read: %w", name, err)
	}
	return text, nil
}

// Parse reads a policy from text; name is the file that errors speak of, kinds are those of files that scope.kinds may
// name.
func Parse(name string, text []byte, kinds ...gitprovider.FileKind) (Policy, error) {
	var f policyFile
	if _, err := strictyaml.Decode(text, &f, strictyaml.Options{}); err != nil {
		return Policy{}, fmt.Errorf("the policy file %s is broken: %w", name, err)
	}
	p, err := f.policy(name, kinds)
	if err != nil {
		return Policy{}, fmt.Errorf("the policy file %s is broken: %w", name, err)
	}
	return p, nil
}

func (f policyFile) policy(name string, kinds []gitprovider.FileKind) (Policy, error) {
	p := Default()
	p.Source = name
	p.Server.DryRun, p.Server.ReadOnly = f.DryRun, f.ReadOnly
	p.Agents.RequireBoundary = f.Sessions != nil && f.Sessions.RequireBoundary
	if f.Version != 1 {
		return p, fmt.Errorf("version must be 1, not %d", f.Version)
	}
	steps := []func(*Policy) error{
		f.scope, func(p *Policy) error { return f.kinds(p, kinds) }, f.repositories, f.baseBranches, f.pins, f.limits, f.caps,
		f.tiers, f.cooldown, f.revisions, f.labels, f.pulls, f.duplicates, f.body,
		f.outgoing, f.tools, f.sources, f.people, f.retention, f.stale, f.checkers, f.facts, f.hooks,
	}
	for _, step := range steps {
		if err := step(&p); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (f policyFile) scope(p *Policy) error {
	section := f.Scope
	if section == nil {
		section = &scopeSection{}
	}
	allow := gitprovider.DefaultAllow()
	if section.Allow != nil {
		allow = *section.Allow
	}
	deny := gitprovider.DefaultDeny()
	for _, drop := range section.DropDefaultDeny {
		at := slices.Index(deny, drop)
		if at < 0 {
			return fmt.Errorf("scope.drop_default_deny: %q is not in the default deny list", drop)
		}
		deny = slices.Delete(deny, at, at+1)
	}
	scope, err := gitprovider.NewScope(allow, append(deny, section.Deny...), filepath.Base(p.Source))
	p.Scope = scope
	return err
}

// kinds admits the kinds of files that the policy names.
func (f policyFile) kinds(p *Policy, known []gitprovider.FileKind) error {
	tier2, err := f.kindsOfTier2(known)
	if f.Scope == nil || err != nil {
		return err
	}
	var names []string
	for _, kind := range known {
		names = append(names, kind.Name)
	}
	for i, name := range f.Scope.Kinds {
		at := slices.Index(names, name)
		switch {
		case at < 0:
			return fmt.Errorf("scope.kinds: %q is not a kind of file; there are %s", name, strings.Join(names, ", "))
		case slices.Contains(f.Scope.Kinds[:i], name):
			return fmt.Errorf("scope.kinds: %q is named twice", name)
		}
		kind := known[at]
		kind.Tier2 = slices.Contains(tier2, name)
		p.Scope = p.Scope.WithKinds(kind)
	}
	return nil
}

// kindsOfTier2 returns the kinds of files that tier 2 may propose, too. Only small kinds may be among them.
func (f policyFile) kindsOfTier2(known []gitprovider.FileKind) ([]string, error) {
	switch {
	case f.Tiers == nil:
		return nil, nil
	case f.Tiers.Tier3 != nil && f.Tiers.Tier3.Kinds != nil:
		return nil, fmt.Errorf("tiers.3.kinds: tier 3 may propose every kind of scope.kinds; leave this out")
	case f.Tiers.Tier2 == nil:
		return nil, nil
	}
	for _, name := range f.Tiers.Tier2.Kinds {
		at := slices.IndexFunc(known, func(k gitprovider.FileKind) bool { return k.Name == name })
		switch {
		case f.Scope == nil || !slices.Contains(f.Scope.Kinds, name):
			return nil, fmt.Errorf("tiers.2.kinds: %q is not in scope.kinds", name)
		case at >= 0 && !known[at].Small:
			return nil, fmt.Errorf("tiers.2.kinds: files of the kind %q are for tier 3 alone", name)
		}
	}
	return f.Tiers.Tier2.Kinds, nil
}

func (f policyFile) tiers(p *Policy) error {
	if f.Tiers == nil {
		return nil
	}
	p.Limits.TierCaps = map[gitprovider.Tier]Caps{}
	for _, t := range []struct {
		tier  gitprovider.Tier
		rules *tierRules
		limit *int
	}{{gitprovider.TierInvestigate, f.Tiers.Tier2, &p.Tiers.Investigate},
		{gitprovider.TierRemediate, f.Tiers.Tier3, &p.Tiers.Remediate}} {
		if t.rules == nil {
			continue
		}
		key, caps := "tiers."+t.tier.String(), p.Limits.Caps
		err := errors.Join(
			setLimit(key+".max_files", t.limit, t.rules.MaxFiles, *t.limit),
			setLimit(key+".open_prs", &caps.OpenPRs, t.rules.OpenPRs, p.Limits.Caps.OpenPRs),
			setLimit(key+".creations_per_hour", &caps.CreationsPerHour, t.rules.CreationsPerHour,
				p.Limits.Caps.CreationsPerHour),
		)
		if err != nil {
			return err
		}
		p.Limits.TierCaps[t.tier] = caps
	}
	return nil
}

// setLimit sets a limit to a value between 0 and the bound that no policy can pass; nil leaves it.
func setLimit(key string, limit, value *int, bound int) error {
	if value == nil {
		return nil
	}
	if *value < 0 || *value > bound {
		return fmt.Errorf("%s: %d is outside 0 to %d", key, *value, bound)
	}
	*limit = *value
	return nil
}

func (f policyFile) repositories(p *Policy) error {
	if f.Repositories != nil && len(f.Repositories) == 0 {
		return fmt.Errorf(
			"repositories: the list is empty, which would refuse every repository; leave the key out or name one")
	}
	for _, s := range f.Repositories {
		pattern, err := ParseRepoPattern(s)
		if err != nil {
			return fmt.Errorf("repositories: %w", err)
		}
		p.Targets.Repositories = append(p.Targets.Repositories, pattern)
	}
	return nil
}

func (f policyFile) baseBranches(p *Policy) error {
	for _, pattern := range f.BaseBranches {
		if pattern == "" || !doublestar.ValidatePattern(pattern) {
			return fmt.Errorf("base_branches: %q is not a valid pattern", pattern)
		}
		if strings.HasPrefix(pattern, gitprovider.BranchPrefix) {
			return fmt.Errorf("base_branches: %q would let proposals be stacked on the branches of other proposals", pattern)
		}
	}
	p.Targets.BaseBranches = f.BaseBranches
	return nil
}

func (f policyFile) limits(p *Policy) error {
	if f.Limits == nil {
		return nil
	}
	return errors.Join(
		setLimit("limits.max_file_bytes", &p.Limits.MaxFileBytes, f.Limits.MaxFileBytes, maxTotalBytes),
		setLimit("limits.max_total_bytes", &p.Limits.MaxTotalBytes, f.Limits.MaxTotalBytes, maxTotalBytes),
	)
}

func (f policyFile) caps(p *Policy) error {
	if f.Caps == nil {
		return nil
	}
	return errors.Join(
		setLimit("caps.open_prs", &p.Limits.Caps.OpenPRs, f.Caps.OpenPRs, maxCap),
		setLimit("caps.creations_per_hour", &p.Limits.Caps.CreationsPerHour, f.Caps.CreationsPerHour, maxCap),
	)
}

func (f policyFile) cooldown(p *Policy) error {
	hours := int(p.Limits.Cooldown / time.Hour)
	err := setLimit("cooldown_hours", &hours, f.Cooldown, int(maxCooldown/time.Hour))
	p.Limits.Cooldown = time.Duration(hours) * time.Hour
	if err == nil && f.CooldownLift != "" {
		p.Limits.CooldownLabel, err = label("cooldown_lift_label", f.CooldownLift)
	}
	return err
}

func (f policyFile) retention(p *Policy) (err error) {
	if f.Retention == nil || f.Retention.SessionTranscripts == nil {
		return nil
	}
	p.Server.SessionTranscripts, err = ParseRetention(*f.Retention.SessionTranscripts)
	if err != nil {
		return fmt.Errorf("retention.session_transcripts: %q is %w", *f.Retention.SessionTranscripts, err)
	}
	return nil
}

// Default and bounds of the ages of stale pull requests.
const (
	defaultRemindAfter = 7 * day
	minStale           = day // also between the reminder and the close
	maxStale           = 365 * day
	day                = 24 * time.Hour
)

func (f policyFile) stale(p *Policy) (err error) {
	if f.Stale == nil {
		return nil
	}
	if p.RemindAfter, err = staleAge("remind_after", f.Stale.RemindAfter, p.RemindAfter); err != nil {
		return err
	}
	if p.CloseAfter, err = staleAge("close_after", f.Stale.CloseAfter, p.CloseAfter); err != nil {
		return err
	}
	if p.CloseAfter > 0 && p.CloseAfter < p.RemindAfter+minStale {
		return fmt.Errorf("stale.close_after: %q is too early: people have at least a day after the reminder "+
			"(remind_after: %s)", *f.Stale.CloseAfter, ageText(p.RemindAfter))
	}
	return nil
}

// staleAge reads an age of the section; by default it is the given one.
func staleAge(name string, raw *string, age time.Duration) (time.Duration, error) {
	if raw == nil || *raw == "0" {
		if raw != nil {
			age = 0
		}
		return age, nil
	}
	age, err := ParseAge(*raw)
	switch {
	case err != nil:
		return 0, fmt.Errorf("stale.%s: %q is not an age such as 7d", name, *raw)
	case age < minStale || age > maxStale:
		return 0, fmt.Errorf("stale.%s: %q is outside 1d to 365d; 0 is never", name, *raw)
	}
	return age, nil
}

// minRetention is the shortest possible retention: the rules look back on days.
const minRetention = 7 * 24 * time.Hour

// ParseRetention reads an age such as 90d or 2160h, of at least seven days; 0 means that everything is kept.
// An error completes a sentence that begins with the value and "is".
func ParseRetention(raw string) (time.Duration, error) {
	if raw == "0" {
		return 0, nil
	}
	age, err := ParseAge(raw)
	if err != nil {
		return 0, errors.New("not an age such as 90d")
	}
	if age < minRetention {
		return 0, errors.New("less than 7d")
	}
	return age, nil
}

// ParseAge reads a number of days such as 7d, or a duration such as 2h30m.
func ParseAge(raw string) (time.Duration, error) {
	days, ok := strings.CutSuffix(raw, "d")
	if !ok {
		return time.ParseDuration(raw)
	}
	n, err := strconv.ParseUint(days, 10, 16)
	return time.Duration(n) * 24 * time.Hour, err //nolint:gosec // 16 bits fit
}

// ToolTier is the lowest tier that may call a tool of a toolset, where the policy raises it.
type ToolTier struct {
	Tool string           `json:"tool"`
	Tier gitprovider.Tier `json:"tier" doc:"The lowest tier that may call it: 2 or 3; a higher one of the tool itself holds all the same"`
}

type toolSection struct {
	Tiers map[string]int `yaml:"tiers"`
}

// tools raises the lowest tiers of tools. Tier 1 would raise nothing, so naming it counts as a mistake.
func (f policyFile) tools(p *Policy) error {
	if f.Tools == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(f.Tools.Tiers)) {
		tier := f.Tools.Tiers[name]
		if strings.TrimSpace(name) == "" {
			return fmt.Errorf("tools.tiers: a tool has no name")
		}
		if tier < int(gitprovider.TierInvestigate) || tier > int(gitprovider.TierRemediate) {
			return fmt.Errorf("tools.tiers.%s: %d is outside %d to %d", name, tier, gitprovider.TierInvestigate,
				gitprovider.TierRemediate)
		}
		p.Agents.ToolTiers = append(p.Agents.ToolTiers, ToolTier{name, gitprovider.Tier(tier)})
	}
	return nil
}

// LeastTier returns the lowest tier that the policy lets call a tool of a toolset; 0 if it says nothing about it.
func (p Policy) LeastTier(tool string) gitprovider.Tier {
	at := slices.IndexFunc(p.Agents.ToolTiers, func(t ToolTier) bool { return t.Tool == tool })
	if at < 0 {
		return 0
	}
	return p.Agents.ToolTiers[at].Tier
}

// sources sets the places that files of projects may choose from.
func (f policyFile) sources(p *Policy) error {
	p.Server.Sources = f.Sources
	return p.Server.Sources.Check()
}
