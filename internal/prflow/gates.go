package prflow

import (
	"context"
	"strings"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/record"
)

// gates runs gates 1 to 6 together and refuses with everything that they found.
func (c *creation) gates(ctx context.Context, raw []byte) error {
	c.progress("checking the request")
	c.argumentsGate(raw)
	if err := c.contentGate(ctx); err != nil {
		return err
	}
	if c.ReadOnly != "" {
		return fault.New(fault.ReadOnly, "%s", c.ReadOnly)
	}
	c.tierAndScopeGates()
	targets, readable := c.targets(), c.repositoryAllowed()
	if readable && len(targets) > 0 && c.Policy.Tiers.MaxFiles(c.Tier) > 0 {
		if err := c.snapshotGates(ctx, targets); err != nil {
			return err
		}
	}
	if violations := c.violations(); len(violations) > 0 {
		return fault.Refusal(violations)
	}
	c.branch = c.chooseBranch()
	c.digest = changeDigest(c.resolution.Provider.Name(), c.snapshot.Repo, c.snapshot.Base, c.filesDigest)
	return nil
}

// rule notes what a gate said.
func (c *creation) rule(gate record.Gate, violations []fault.Violation, detail string) {
	v := record.Verdict{Gate: gate, Ruling: record.Pass, Detail: detail, Violations: violations}
	if len(violations) > 0 {
		v.Ruling = record.Deny
	}
	c.verdicts = append(c.verdicts, v)
}

// ruled reports whether a gate has spoken.
func (c *creation) ruled(gate record.Gate) bool {
	for _, v := range c.verdicts {
		if v.Gate == gate {
			return true
		}
	}
	return false
}

// denied reports whether a gate has refused.
func (c *creation) denied(gate record.Gate) bool {
	for _, v := range c.verdicts {
		if v.Gate == gate && v.Ruling == record.Deny {
			return true
		}
	}
	return false
}

// violations lists what the gates found, in the order of the gates.
func (c *creation) violations() []fault.Violation {
	var out []fault.Violation
	for _, gate := range Gates() {
		for _, v := range c.verdicts {
			if v.Gate == gate {
				out = append(out, v.Violations...)
			}
		}
	}
	return out
}

func (c *creation) argumentsGate(raw []byte) {
	violations := decodeSome(raw, &c.req)
	malformed := len(violations) > 0
	c.req.normalize()
	repo, problems := parseRepo(c.req.RepoOwner, c.req.RepoName, c.req.CloneURL)
	if len(problems) == 0 {
		c.repo = repo
	}
	if !malformed {
		violations = append(c.req.check(c.Policy.Text.RequiredSections), problems...)
	}
	if len(violations) == 0 {
		violations = c.rewriteTexts()
	}
	c.filesDigest = filesDigest(c.req.fileChanges())
	c.rule(record.GateArguments, violations, "")
}

func (c *creation) tierAndScopeGates() {
	if len(c.req.Files) == 0 { // nothing to judge: the arguments were refused
		return
	}
	rules := gitprovider.Rules{Tier: c.Tier, Limits: c.Policy.Tiers, Scope: c.Policy.Scope}
	changes, violations := gitprovider.NewChangeSet(rules, c.req.fileChanges())
	c.changes = changes
	var tier, scope []fault.Violation
	for _, v := range violations {
		if v.Code == fault.TierDenied {
			tier = append(tier, v)
		} else {
			scope = append(scope, v)
		}
	}
	c.rule(record.GateTier, tier, "tier "+c.Tier.String())
	c.rule(record.GateScope, scope, "")
}

func (c *creation) contentGate(ctx context.Context) error {
	scan, cancel := context.WithTimeout(ctx, contentTimeout)
	defer cancel()
	violations, err := c.checkContent(scan, &c.req)
	if err != nil {
		c.req.withheld = true
		if ctx.Err() != nil {
			return fault.From(ctx.Err())
		}
		return fault.Wrap(err, fault.Internal, "the search for secrets could not run, so nothing is proposed")
	}
	c.rule(record.GateContent, violations, "")
	return nil
}

// target is a file whose path the base tree can be asked for.
type target struct {
	path    gitprovider.Path
	action  gitprovider.Action
	content string
}

// targets lists the files whose paths are in scope, also when others are not: gate 4 speaks about all it can.
func (c *creation) targets() []target {
	var out []target
	for _, f := range c.req.fileChanges() {
		if path, err := gitprovider.ParsePath(f.Path); err == nil && f.Action.Valid() && c.Policy.Scope.Check(f.Path).Allowed {
			out = append(out, target{path, f.Action, f.Content})
		}
	}
	return out
}

// repositoryAllowed is gate 6 as far as it needs no call. It reports whether the provider may be asked.
func (c *creation) repositoryAllowed() bool {
	if c.repo.Owner == "" {
		return false
	}
	resolution, err := c.resolveTarget()
	if err != nil {
		e := fault.From(err)
		c.rule(record.GateRepository, []fault.Violation{{Code: e.Code, Rule: "provider", Message: e.Message}}, "")
		return false
	}
	c.resolution = resolution
	if v := c.repoViolation(resolution); v != nil {
		c.rule(record.GateRepository, []fault.Violation{*v}, "")
		return false
	}
	return true
}

// snapshotGates reads the repository and lets gates 4 and 6 speak. A provider that fails is an error only if nothing
// else refuses the request: the caller learns first what it can change.
func (c *creation) snapshotGates(ctx context.Context, targets []target) error {
	c.progress("reading the repository")
	query := gitprovider.SnapshotQuery{
		Repo: c.repo, Base: c.req.BaseBranch, ClosedSince: c.started.Add(-c.Policy.Limits.Cooldown), Foreign: true,
	}
	if c.DryRun { // a preview shows them; a creation learns from Commit whether a name is taken, and needs no bytes
		query.Branches, query.Contents = c.branchNames(), true
	}
	for _, t := range targets { // the only file whose former content a creation has to know
		query.Contents = query.Contents || strings.EqualFold(t.path.String(), gitprovider.ManifestFile)
	}
	if query.Base == "" {
		query.Base = c.resolution.BaseBranch
	}
	for _, t := range targets {
		query.Paths = append(query.Paths, t.path)
	}
	seen, err := c.History.Position(ctx)
	if err != nil {
		return err
	}
	c.seen = seen
	snapshot, err := c.resolution.Provider.Snapshot(ctx, query)
	if err != nil {
		if len(c.violations()) > 0 && ctx.Err() == nil {
			return nil
		}
		return err
	}
	if err := c.keepOurs(snapshot); err != nil {
		return err
	}
	c.snapshot = snapshot
	var violations []fault.Violation
	for _, t := range targets {
		if v := snapshot.Tree.Mismatch(gitprovider.Change{Path: t.path, Action: t.action, Content: t.content}); v != nil {
			violations = append(violations, *v)
		}
	}
	c.rule(record.GateBaseTree, violations, "base "+snapshot.Base+" at "+short(snapshot.BaseCommit))
	c.rule(record.GateRepository, c.checkBase(c.resolution.Provider, snapshot, c.resolution.BaseBranch),
		c.resolution.Provider.Name()+":"+snapshot.Repo.String()+", settled by "+c.resolution.Via)
	c.noteRedirect(c.redirect(snapshot, targets))
	return nil
}

func short(commit string) string { return commit[:min(len(commit), 12)] }
