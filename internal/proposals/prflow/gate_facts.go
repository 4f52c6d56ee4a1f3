package prflow

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/claudeops/claudeops/internal/base/facts"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// factsGate reads what a change names and would do, for the people who decide about it. It denies the classes that the
// policy refuses.
func factsGate() gate {
	return gate{
		Name: record.GateFacts, Phase: phaseRepository,
		Asks: "what added and altered lines name and would do: people are shown it, and the policy may refuse classes of it " +
			"(`facts`)",
		Judge: judgeFacts,
	}
}

func judgeFacts(ctx context.Context, on rules, r *createRequest, e *evidence) (ruling, error) {
	if e.comparedSnapshot() == nil || r.asked.repliesOnly() {
		return ruling{skipped: true}, nil
	}
	files, err := e.filesOfFacts(ctx, on, r)
	if err != nil {
		return ruling{}, err
	}
	e.facts = withoutCredentials(on.secrets, facts.Read(files, e.namedElsewhere(ctx, on))).Add(e.recorded)
	return ruleOnFacts(on, r, e.facts), nil
}

// ruleOnFacts says what the policy says about facts: classes that it refuses, and those that a person who promotes a
// dry run has to confirm.
func ruleOnFacts(on rules, r *createRequest, in facts.Reading) ruling {
	out := ruling{detail: in.Summary(), violations: refusedFacts(on, in)}
	if r.promoted == nil {
		return out
	}
	confirmed, err := on.Policy.Facts.Confirm(r.promoted.FactTier(), in, r.acknowledged)
	if err == nil {
		err = newSince(r.promoted.Facts, in, confirmed)
	}
	if err != nil {
		out.violations = append(out.violations, fault.From(err).Violations...)
	} else if len(confirmed) > 0 {
		out.detail += "; " + policy.Confirmed(confirmed)
	}
	return out
}

// newSince refuses a promotion by a person who has confirmed facts of the classes as the dry run had them, where there
// are others by now: from another revision of the pull request, or of a checker that has changed its mind.
func newSince(shown, now facts.Reading, classes []facts.Class) error {
	if !shown.WasRead() {
		return nil
	}
	for _, f := range now.Facts {
		seen := slices.ContainsFunc(shown.Facts, func(was facts.Fact) bool {
			return was.Class == f.Class && was.Path == f.Path && was.Removed == f.Removed && was.Sentence == f.Sentence
		})
		if !seen && slices.Contains(classes, f.Class) {
			return fault.Refusal([]fault.Violation{{
				Code: fault.Conflict, Path: f.Path, Rule: "facts:" + string(f.Class),
				Message: fmt.Sprintf("%s%s; this came after the dry run, so you have not seen it there", placeOf(f),
					quote(f.Sentence)),
				Suggestion: "have the change proposed again, and look at it",
			}})
		}
	}
	return nil
}

// filesOfFacts returns the files of the change with their texts before it: of a revision the whole pull request against
// the base branch, since that is what is merged.
func (e *evidence) filesOfFacts(ctx context.Context, on rules, r *createRequest) (out []facts.File, err error) {
	changes, before := r.inScope(on.Policy.Scope.At(on.Tier)), e.comparedSnapshot().Contents
	if e.revision != nil {
		if changes, err = e.unrecorded(ctx); err != nil {
			return nil, err
		}
		if before, err = e.textsOnBase(ctx, changes); err != nil {
			return nil, err
		}
	}
	for _, c := range changes {
		f := facts.File{Path: c.Path.String(), Old: string(before[c.Path]), New: c.Content}
		if c.Action == gitprovider.ActionDelete {
			f.New = ""
		}
		out = append(out, f)
	}
	return out, nil
}

// unrecorded returns the files of a revised pull request whose facts have to be read: those of the request, and the
// others where the record of the newest change does not have their facts. Those that it has become e.recorded.
func (e *evidence) unrecorded(ctx context.Context) ([]gitprovider.Change, error) {
	all := changesIn(e.revision.net)
	newest, err := e.history.ByDigest(ctx, e.marks[e.revision.pr.Number].Digest)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(newest, func(p record.Proposal) bool { return p.Facts.WasRead() && p.Facts.More == 0 })
	if at < 0 {
		return all, nil
	}
	kept := map[string]bool{}
	for _, f := range e.revision.also {
		kept[f.Path] = !slices.ContainsFunc(newest[at].Files, func(was gitprovider.FileChange) bool {
			return was.Path == f.Path && f.Content != nil && was.Content != *f.Content
		})
	}
	e.recorded = nil
	for _, f := range newest[at].Facts.Facts {
		if kept[f.Path] {
			e.recorded = append(e.recorded, f)
		}
	}
	return slices.DeleteFunc(all, func(c gitprovider.Change) bool { return kept[c.Path.String()] }), nil
}

// textsOnBase reads, once, the files of a revised pull request as the base branch has them. Those that the tree of the
// base branch shows to be new need no request.
func (e *evidence) textsOnBase(ctx context.Context, changes []gitprovider.Change) (map[gitprovider.Path][]byte, error) {
	if e.onBase != nil || len(changes) == 0 {
		return e.onBase, nil
	}
	query := gitprovider.SnapshotQuery{Repo: e.snapshot.Repo, Base: e.snapshot.Base, Contents: true, FilesOnly: true}
	listed := map[string]bool{".": true} // folders whose entries the tree has
	for at := range e.snapshot.Tree {
		listed[path.Dir(at)] = true
	}
	for _, c := range changes {
		_, exists := e.snapshot.Tree[c.Path.String()]
		if exists || !listed[path.Dir(c.Path.String())] {
			query.Paths = append(query.Paths, c.Path)
		}
	}
	e.onBase = map[gitprovider.Path][]byte{}
	if len(query.Paths) == 0 {
		return e.onBase, nil
	}
	snapshot, err := e.resolution.Provider.Snapshot(ctx, query)
	if err != nil {
		e.onBase = nil
		return nil, err
	}
	e.onBase = snapshot.Contents
	return e.onBase, nil
}

// withoutCredentials hides what looks like a credential in the words of facts: lines that a change alters may have held
// one before.
func withoutCredentials(secrets Secrets, in facts.Reading) facts.Reading {
	for i, f := range in.Facts {
		in.Facts[i].Words, in.Facts[i].Sentence = secrets.Hide(f.Words), secrets.Hide(f.Sentence)
	}
	return in
}

// maxRefusedFacts bounds the violations of one class.
const maxRefusedFacts = 5

func refusedFacts(on rules, in facts.Reading) (out []fault.Violation) {
	for _, class := range on.Policy.Facts.Chosen(on.Tier, in, policy.RefuseFact) {
		n := 0
		for _, f := range in.Facts {
			if f.Class != class || n == maxRefusedFacts {
				continue
			}
			n++
			out = append(out, fault.Violation{
				Code: fault.ContentDenied, Path: f.Path, Rule: "facts:" + string(class),
				Message:    fmt.Sprintf("%s%s; the operator's policy refuses that (facts: %s)", placeOf(f), quote(f.Sentence), class),
				Suggestion: "leave this out, or say in the body of a proposal without it what a person should do",
			})
		}
	}
	return out
}

// Bounds of the search for hosts in files that a change does not touch.
const (
	maxHostFiles = 100
	maxHostBytes = 512 << 10
)

// namedElsewhere returns a function that says whether another file in scope of the base branch names a host. The files
// are read when it is first called, those next to the change first, at most maxHostFiles with maxHostBytes. A file
// whose hosts are kept from another proposal is not read again. What cannot be read names no host: then an address that
// is not new is shown as well.
func (e *evidence) namedElsewhere(ctx context.Context, on rules) func(host string) bool {
	return func(host string) bool {
		if e.hosts == nil {
			e.hosts = map[string]bool{}
			if err := e.readHosts(ctx, on); err != nil {
				e.log.warn("hosts of other files not read", err)
			}
		}
		return e.hosts[host]
	}
}

func (e *evidence) readHosts(ctx context.Context, on rules) error {
	lister, can := e.resolution.Provider.(gitprovider.FileLister)
	if !can {
		return nil
	}
	scope := on.Policy.Scope.At(on.Tier)
	listed, _, err := listScope(ctx, lister, scope, e.snapshot, nil)
	if err != nil {
		return err
	}
	repo := e.resolution.Provider.Name() + "/" + e.snapshot.Repo.String()
	blobs := map[gitprovider.Path]string{}
	query := gitprovider.SnapshotQuery{Repo: e.snapshot.Repo, Base: e.snapshot.Base, Contents: true, FilesOnly: true}
	for _, f := range e.nearest(scope, listed) {
		at, err := gitprovider.ParsePath(f.Path)
		if _, changed := e.comparedSnapshot().Contents[at]; err != nil || changed {
			continue // facts.Read knows the hosts of a changed one
		}
		blobs[at] = repo + " " + f.ID
		if hosts, read := on.hosts.of(blobs[at]); read {
			e.addHosts(hosts)
		} else {
			query.Paths = append(query.Paths, at)
		}
	}
	if len(query.Paths) == 0 {
		return nil
	}
	snapshot, err := e.resolution.Provider.Snapshot(ctx, query)
	if err != nil {
		return err
	}
	for at, text := range snapshot.Contents {
		hosts := facts.Hosts(string(text))
		e.addHosts(hosts)
		if snapshot.BaseCommit == e.snapshot.BaseCommit { // else the list is of another commit
			on.hosts.keep(blobs[at], hosts)
		}
	}
	return nil
}

func (e *evidence) addHosts(hosts []string) {
	for _, host := range hosts {
		e.hosts[host] = true
	}
}

// blobHosts keeps the hosts that files name, by their repository and blob, for later proposals. It is safe for
// concurrent use.
type blobHosts struct {
	mu    sync.Mutex
	hosts map[string][]string
}

// maxBlobHosts bounds the files of which hosts are kept. Beyond it, all are read anew.
const maxBlobHosts = 10_000

// of returns the hosts of a blob, and whether they are kept.
func (b *blobHosts) of(blob string) (hosts []string, read bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	hosts, read = b.hosts[blob]
	return hosts, read
}

func (b *blobHosts) keep(blob string, hosts []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hosts == nil || len(b.hosts) >= maxBlobHosts {
		b.hosts = map[string][]string{}
	}
	b.hosts[blob] = hosts
}

// nearest chooses files within the bounds: those of the changed files' folders, then the others, by path.
func (e *evidence) nearest(scope gitprovider.Scope, listed []gitprovider.ListedFile) (out []gitprovider.ListedFile) {
	near := map[string]bool{}
	for at := range e.comparedSnapshot().Contents {
		near[path.Dir(at.String())] = true
	}
	slices.SortStableFunc(listed, func(a, b gitprovider.ListedFile) int {
		return rankOf(near[path.Dir(a.Path)]) - rankOf(near[path.Dir(b.Path)])
	})
	bytes := int64(0)
	for _, f := range listed {
		if !scope.Check(f.Path).Allowed || bytes+f.Size > maxHostBytes {
			continue
		}
		if len(out) == maxHostFiles {
			break
		}
		bytes += f.Size
		out = append(out, f)
	}
	return out
}

func rankOf(near bool) int {
	if near {
		return 0
	}
	return 1
}

// FactLine is a fact in an answer to an agent: enough to say in the body why the line is there.
type FactLine struct {
	Class facts.Class `json:"class"`
	Path  string      `json:"path"`
	Line  int         `json:"line"`
}

// maxFactLines bounds the facts in an answer, in bytes of their JSON.
const maxFactLines = 1 << 10

// factLines returns the facts for an agent, the gravest first, as many as fit.
func factLines(in facts.Reading) (out []FactLine) {
	const around = len(`{"class":"","path":"","line":00000},`)
	left := maxFactLines
	for _, f := range in.Facts {
		left -= around + len(f.Class) + len(f.Path)
		if left < 0 {
			break
		}
		out = append(out, FactLine{f.Class, f.Path, f.Line})
	}
	return out
}

// maxFooterFacts bounds the facts in the footer of a pull request.
const maxFooterFacts = 10

// factsNote lists facts for the footer of a pull request, the gravest first. Their words stand in code, which they
// cannot end, so that no forge acts on them. It is "" for none.
func factsNote(in facts.Reading) string {
	if len(in.Facts) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("What the added lines would do, as facts, not as a verdict:\n\n")
	more := len(in.Facts) + in.More
	groups := facts.Alike(in.Facts)
	for _, alike := range groups[:min(len(groups), maxFooterFacts)] {
		fmt.Fprintf(&b, "- %s: %s%s\n", alike[0].Class.Words(), footerPlaces(alike), inCode(alike[0].Words))
		more -= len(alike)
	}
	if more > 0 {
		fmt.Fprintf(&b, "- and %d more in the dashboard\n", more)
	}
	return b.String() + "\n"
}

// maxFooterLines bounds the lines of one fact in the footer.
const maxFooterLines = 10

// footerPlaces says where facts stand that say the same: "`a.md` lines 3, 17, `b.md` line 4: "; "" for one about the
// whole change.
func footerPlaces(alike []facts.Fact) string {
	if alike[0].Path == "" {
		return ""
	}
	var b strings.Builder
	for i, f := range alike {
		switch {
		case i == maxFooterLines:
			fmt.Fprintf(&b, " and %d more", len(alike)-i)
		case i > maxFooterLines:
		case i > 0 && f.NextTo(alike[i-1]):
			fmt.Fprintf(&b, ", %d", f.Line)
		default:
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(footerPlace(f, i+1 < len(alike) && alike[i+1].NextTo(f)))
		}
	}
	return b.String() + ": "
}

// placeOf says where a fact stands, before what it says; "" for one about the whole change.
func placeOf(f facts.Fact) string {
	switch {
	case f.Path == "":
		return ""
	case f.Removed:
		return fmt.Sprintf("removed line %d of %s: ", f.Line, quote(f.Path))
	}
	return fmt.Sprintf("line %d of %s: ", f.Line, quote(f.Path))
}

// footerPlace says where a fact stands. several says that more lines of the file follow.
func footerPlace(f facts.Fact, several bool) string {
	line := "line"
	if f.Removed {
		line = "removed line"
	}
	if several {
		line += "s"
	}
	return fmt.Sprintf("%s %s %d", inCode(f.Path), line, f.Line)
}

// inCode returns text of others as a code span of one line that it cannot end.
func inCode(text string) string {
	kept := strings.Map(func(r rune) rune {
		if r == '`' || r == '<' || r == '>' || unicode.IsControl(r) {
			return '?'
		}
		return r
	}, clean(text, facts.MaxWords))
	if strings.TrimSpace(kept) == "" {
		kept = "?" // a span of spaces alone is none
	}
	return "`" + kept + "`"
}
