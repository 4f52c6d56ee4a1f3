package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/system/fileset"
)

// Candidate is a commit that may come into a repository, such as the head of a pull request.
type Candidate struct {
	Provider string
	Owner    string
	Name     string
	Commit   string // 40 or 64 hexadecimal digits
}

// Preview lists what a deployment would change on this machine if a candidate replaced the present contents of its
// repository.
type Preview struct {
	Concerned bool // false: neither the configuration nor a module comes from the repository, and nothing else is said
	Plan      *fileset.Plan
	Files     []FileDiff // in the plan's order
	// Pending are the files that a deployment would change in the same way without the candidate.
	Pending  map[fileset.FileKey]bool
	Adopts   int // files that were there before, and that the deployment would replace
	Warnings []string
}

// Concerns reports whether the configuration, or one of its modules, comes from a repository: one that the operator has
// named (Settings.Repos), or, if none is named, the one whose address the checkout AGENTPACK_HOME/repo was cloned from,
// or that of a module. It reads the configuration and starts git once, at most.
func (s *Service) Concerns(ctx context.Context, provider, owner, name string) (bool, error) {
	if err := s.checkHome(); err != nil {
		return false, err
	}
	if own, err := s.configuration(ctx, provider, owner, name); own || err != nil {
		return own, err
	}
	config, err := loadConfig(s.setup.repo(""), true)
	switch e := errorOf(err); {
	case e != nil && e.Code == ConfigMissing:
		return false, nil
	case err != nil:
		return false, err
	}
	return len(modulesOf(config, owner, name)) > 0, nil
}

// configuration reports whether the configuration itself comes from a repository.
func (s *Service) configuration(ctx context.Context, provider, owner, name string) (bool, error) {
	if len(s.repos) == 0 {
		address, err := s.setup.Git.origin(ctx, s.setup.repo(""))
		return sameRepository(address, owner, name), err
	}
	full := strings.ToLower(owner + "/" + name)
	return slices.ContainsFunc(s.repos, func(named string) bool {
		named = strings.ToLower(named)
		return named == full || named == strings.ToLower(provider)+":"+full
	}), nil
}

// modulesOf returns the ids of modules that come from a repository, by the name at the end of their address.
func modulesOf(c *Config, owner, name string) (ids []string) {
	for _, m := range c.Modules {
		if m.Source.Git != nil && sameRepository(m.Source.Git.URL, owner, name) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// sameRepository reports whether an address of git ends with the name of a repository, small and capital letters aside.
func sameRepository(address, owner, name string) bool {
	home, err := homeOf(address)
	return err == nil && strings.EqualFold(home.Owner, owner) &&
		strings.EqualFold(home.Name, strings.TrimSuffix(name, ".git"))
}

// Preview says what a deployment would change with a candidate. It changes no target, and fetches from no address that
// the configuration in place does not have: what is proposed may name any. Errors are those of Plan, and E_GIT_FAILED
// if the commit cannot be had.
func (s *Service) Preview(ctx context.Context, c Candidate) (p Preview, err error) {
	if p.Concerned, err = s.Concerns(ctx, c.Provider, c.Owner, c.Name); err != nil || !p.Concerned {
		return p, faulted(err)
	}
	from, warnings, err := s.candidate(ctx, c)
	if err != nil {
		return p, faultOf(err)
	}
	d, err := s.setup.desire(ctx, Request{}, from)
	if err != nil {
		return p, faultOf(err)
	}
	if p.Plan, err = s.engine.Plan(ctx, d); err != nil {
		return p, faultOf(err)
	}
	if p.Files, p.Warnings, err = Diff(p.Plan); err != nil {
		return p, faultOf(err)
	}
	p.Adopts = len(p.Plan.Adopted())
	p.Warnings = slices.Concat(warnings, p.Plan.Warnings, p.Warnings)
	p.Pending = s.pending(ctx, p.Plan)
	return p, nil
}

// faulted is faultOf for an error that may be nil.
func faulted(err error) error {
	if err == nil {
		return nil
	}
	return faultOf(err)
}

// pending returns the files that a deployment changes already as a plan does.
func (s *Service) pending(ctx context.Context, with *fileset.Plan) map[fileset.FileKey]bool {
	now, err := s.Plan(ctx, Request{})
	if err != nil {
		return nil // the page of deployments says why
	}
	after := map[fileset.FileKey]string{}
	for _, c := range now.Changes {
		after[fileset.FileKey{Target: c.Target, Path: c.Path}] = string(c.Op) + c.Content().SHA256()
	}
	out := map[fileset.FileKey]bool{}
	for _, c := range with.Changes {
		key := fileset.FileKey{Target: c.Target, Path: c.Path}
		out[key] = after[key] == string(c.Op)+c.Content().SHA256()
	}
	maps.DeleteFunc(out, func(_ fileset.FileKey, same bool) bool { return !same })
	return out
}

// candidate returns the reading of the configuration if the candidate is part of it.
func (s *Service) candidate(ctx context.Context, c Candidate) (from configSource, warnings []string, err error) {
	if !isCommit(c.Commit) {
		return from, nil, fileset.NewError(GitFailed, "git_failed", []string{"retry_command"},
			"it is not known which commit is the head of the pull request")
	}
	repo := s.setup.repo("")
	current, err := loadConfig(repo, true)
	if err != nil {
		return from, nil, err
	}
	from = configSource{repo: repo, dir: repo, trusted: true, hashes: s.engine.Hashes}
	own, err := s.configuration(ctx, c.Provider, c.Owner, c.Name)
	if err != nil {
		return from, nil, err
	}
	if own {
		address := s.setup.Origin(ctx, repo)
		if address == "" {
			address = repo
		}
		if from.dir, err = s.setup.Git.Folder(ctx, (&GitSource{URL: address, Ref: c.Commit}).operators(),
			c.Commit); err != nil {
			return from, nil, err
		}
		proposed, err := LoadConfig(from.dir)
		if err != nil {
			return from, nil, err
		}
		from.choose = s.setup.chooseOf(current)
		for _, m := range proposed.Modules {
			if m.Source.Git == nil {
				continue
			}
			if _, err := from.choose(m); err != nil {
				return from, nil, err
			}
		}
		from.trusted = proposed.Targets[Codex].Options["codex_home"] == current.Targets[Codex].Options["codex_home"]
	}
	from.commit = func(g *GitSource) string {
		if sameRepository(g.URL, c.Owner, c.Name) {
			return c.Commit
		}
		return ""
	}
	lock, err := readLock(from.dir, from.own())
	if err != nil {
		return from, nil, err
	}
	for _, m := range current.Modules {
		if m.Source.Git != nil && sameRepository(m.Source.Git.URL, c.Owner, c.Name) && lock.commit(m) != "" {
			warnings = append(warnings,
				fmt.Sprintf("the module %s is pinned by %s to the commit %.12s: it changes when the lock file does", m.ID, lockName,
					lock.commit(m)))
		}
	}
	return from, warnings, nil
}

// chooseOf returns how a proposed configuration chooses sources: among the addresses that the one in place has, and
// those that the operator has admitted.
func (s Setup) chooseOf(current *Config) func(Module) (*GitSource, error) {
	known := map[string]bool{}
	for _, m := range current.Modules {
		if m.Source.Git != nil {
			known[m.Source.Git.URL] = true
		}
	}
	return func(m Module) (*GitSource, error) {
		if known[m.Source.Git.URL] {
			return m.Source.Git.operators(), nil // as the configuration in place, which is the operator's
		}
		chosen, err := s.admitSource(m)
		if err != nil {
			err = notNamed(m.Source.Git.URL,
				"the module %s comes from %s, which neither the configuration in place uses nor the operator has admitted; "+
					"nothing is fetched from there before the pull request is merged, so that what it would change is not known", m.ID,
				fileset.Short(m.Source.Git.URL)).
				With("module_id", m.ID).With("url", m.Source.Git.URL)
		}
		return chosen, err
	}
}

// FileState says what a target has of a repository's file.
type FileState string

// What there is.
const (
	AsProposed     FileState = "as proposed"
	AnotherVersion FileState = "another version"  // as it was deployed
	ChangedInPlace FileState = "changed in place" // neither of these
	NotThere       FileState = "not there"
)

// Whereabouts is a file of a repository in a target.
type Whereabouts struct {
	File   string // of the repository
	Target fileset.TargetName
	Path   string // of the target's file
	Has    FileState
}

// WhereIs says what the targets have of files of a repository; hashes are the SHA-256 of their proposed contents, by
// path. Files that no module has are left out. It changes nothing, and may fetch modules of other repositories.
func (s *Service) WhereIs(ctx context.Context, provider, owner, name string,
	hashes map[string]string) (out []Whereabouts, err error) {
	t, err := s.traced(ctx, Request{})
	if err != nil {
		return nil, faultOf(err)
	}
	p, err := s.engine.Plan(ctx, t.Desired)
	if err != nil {
		return nil, faultOf(err)
	}
	_, list, _, err := s.Status(ctx, Request{})
	if err != nil {
		return nil, faultOf(err)
	}
	drifted := map[fileset.FileKey]bool{}
	for _, item := range list {
		drifted[fileset.FileKey{Target: item.Target, Path: item.Path}] = item.Kind == fileset.Modified
	}
	own, err := s.configuration(ctx, provider, owner, name)
	if err != nil {
		return nil, faultOf(err)
	}
	keys := slices.SortedFunc(maps.Keys(t.files), func(a, b fileset.FileKey) int {
		return strings.Compare(string(a.Target)+"\x00"+a.Path, string(b.Target)+"\x00"+b.Path)
	})
	for _, key := range keys {
		of := t.files[key]
		for i, part := range of.parts {
			kept := s.placeOf(t.from, part.module, part.file)
			hash, asked := hashes[kept.path]
			if !asked || kept.address == "" && !own || kept.address != "" && !sameRepository(kept.address, owner, name) {
				continue
			}
			has, err := standing(p, key, of, i, hash, drifted[key])
			if err != nil {
				return nil, faultOf(err)
			}
			out = append(out, Whereabouts{kept.path, key.Target, key.Path, has})
		}
	}
	return out, nil
}

// standing compares a part of a target's file with a proposed content. drifted says that the file is not as it was
// deployed.
func standing(p *fileset.Plan, key fileset.FileKey, of madeOf, i int, hash string, drifted bool) (FileState, error) {
	content, err := p.Read(key.Path)
	if err != nil {
		return "", ioError(key.Path, err)
	}
	now, whole := of.apart(string(content))
	same := func(text string) bool { return fileset.Hash([]byte(text)) == hash }
	switch {
	case content == nil:
		return NotThere, nil
	case whole && (same(now[i]) || of.parts[i].line && same(strings.TrimSuffix(now[i], "\n"))):
		return AsProposed, nil
	case drifted:
		return ChangedInPlace, nil
	}
	return AnotherVersion, nil
}

// Merges records the merges that this machine deploys automatically. It is stored in the state, so that a server that
// was killed continues where it was.
type Merges struct {
	// Position is the place in the audit up to which merges were read; -1 before the first look.
	Position int64 `json:"position"`
	// Due is the merge that is not in place yet; nil if there is none. What was merged before it comes into place with it.
	Due *DueMerge `json:"due,omitempty"`
	// Last is the merge that was dealt with last.
	Last *DueMerge `json:"last,omitempty"`
}

// DueMerge is a merge that is to be deployed, and why it is not yet.
type DueMerge struct {
	Provider string    `json:"provider"`
	Owner    string    `json:"owner"`
	Name     string    `json:"repo"`
	Number   int       `json:"number"`
	Title    string    `json:"title"`
	Seen     time.Time `json:"seen"`
	// Why says what a person has to do, in a sentence; "" if the deployment has not been tried yet.
	Why   string   `json:"why,omitempty"`
	Code  Code     `json:"code,omitempty"`
	Adopt []string `json:"adopt,omitempty"` // files that were not deployed, about which a person has to decide
	// Snapshot is the newest one when it was tried last: another one means that a person has deployed meanwhile.
	Snapshot string    `json:"snapshot,omitempty"`
	Tried    time.Time `json:"tried,omitzero"`
}

const mergesName = "merges.json"

// ReadMerges reads what is remembered. What cannot be read counts as nothing: the merges that are seen from now on are
// deployed.
func ReadMerges(s fileset.State) (Merges, error) {
	m := Merges{Position: -1}
	text, err := s.ReadFile(mergesName)
	if err != nil || text == nil {
		return m, err
	}
	if json.Unmarshal(text, &m) != nil {
		m = Merges{Position: -1}
	}
	return m, nil
}

// WriteMerges remembers, on disk.
func WriteMerges(s fileset.State, m Merges) error { return s.WriteJSON(mergesName, m) }

// LockMerges keeps other processes of this machine from deploying merges until unlock is called, or this process ends.
// ok is false if another has it.
func LockMerges(s fileset.State) (unlock func(), ok bool, err error) { return s.TryLock("merges.lock") }

// Waiting returns the merge that waits for a person; nil if there is none.
func (s *Service) Waiting() (*DueMerge, error) {
	if err := s.checkHome(); err != nil {
		return nil, faultOf(err)
	}
	m, err := ReadMerges(s.engine.State())
	if err != nil || m.Due == nil || m.Due.Why == "" {
		return nil, faulted(err)
	}
	return m.Due, nil
}
