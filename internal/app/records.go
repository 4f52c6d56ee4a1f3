package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/ops/admin"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/auditsink"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// stateFolder is the folder of records, locks and keys.
type stateFolder struct {
	path    string // "" if this process needs none
	parents bool   // the folders above it may be made, too
}

// stateFolderOf returns the folder that a server needs. With PostgreSQL and a configured key it keeps nothing there but
// sessions.
func stateFolderOf(c config.Config) stateFolder {
	if c.Records.DatabaseURL != "" && c.Records.MarkKey != "" && c.Sessions.Schedule.Cadence.IsZero() {
		return stateFolder{}
	}
	return stateFolder{c.Records.Dir, c.Records.DirDefault}
}

// writable tries to write a file in the folder, which it makes if it is missing: with PostgreSQL the records do not.
// misconfigured, saying what to do, if that fails.
func (s stateFolder) writable() error {
	if s.path == "" {
		return nil
	}
	const block = 4 << 10 // less may fit into a disk that is full
	folder, err := files.MakeTemporary(s.path, ".writable-")
	if errors.Is(err, fs.ErrNotExist) {
		if err = s.make(); err == nil {
			folder, err = files.MakeTemporary(s.path, ".writable-")
		}
	}
	if err != nil {
		return s.unusable(err)
	}
	_, err = folder.Write("block", make([]byte, block))
	if err = errors.Join(err, folder.Remove()); err != nil {
		return s.unusable(err)
	}
	return nil
}

func (s stateFolder) make() error {
	const private = 0o700
	if s.parents {
		if err := files.MkdirAll(filepath.Dir(s.path), private); err != nil {
			return err
		}
	}
	err := files.Mkdir(s.path, private)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func (s stateFolder) unusable(err error) error {
	what := "cannot be written: give this user write permission on it, or name another one with CLAUDEOPS_STATE_DIR"
	waitsFor := ""
	switch {
	case errors.Is(err, fs.ErrNotExist):
		waitsFor = store.WaitsForFolder
		what = "cannot be made: the folder above it does not exist. Make that, or name another one with CLAUDEOPS_STATE_DIR"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		waitsFor = store.WaitsForRoom
		what = "cannot be written: its disk is full. Make room on it, or name another one with CLAUDEOPS_STATE_DIR"
	case errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EIO):
		waitsFor = store.WaitsForDisk
		what = "cannot be written: its file system is read-only or fails. Look at the disk, or name another one with " +
			"CLAUDEOPS_STATE_DIR"
	}
	return fault.Wrap(err, fault.Misconfigured, "the state folder %s %s", s.path, what).Awaits(waitsFor)
}

// servedRecords are the records as a server's readiness sees them: what cannot be written is as good as gone.
type servedRecords struct {
	*store.History
	store  *store.Store
	folder stateFolder
}

// Ping reports whether the records can be read, and files written beside them.
func (r servedRecords) Ping(ctx context.Context) error {
	if err := r.store.Ping(ctx); err != nil {
		return err
	}
	return r.folder.writable()
}

// roundRecords implements prflow.RoundRecords.
type roundRecords struct {
	*store.JobClaims
	*store.History
}

// NewRounds makes what looks at open pull requests again and again.
func (p *Parts) NewRounds() *prflow.PeriodicJob {
	return prflow.NewPeriodicJob(p.Flow, roundRecords{p.Store.JobClaims, p.Store.History})
}

// newSinks makes what exports the heads of the audit. It contacts nothing.
func newSinks(p *Parts) *auditsink.Exporter {
	host, _ := os.Hostname() // syslog has a word for a machine without a name
	sinks := auditsink.New(auditsink.Options{
		Addresses: p.Cfg.Records.AuditSinks, Audit: p.Store.Audit, Host: host,
		Transport: transport.NewPool(http.ProxyFromEnvironment),
		Warn: func(ctx context.Context, sink, problem string) {
			if problem == "" {
				p.Log.InfoContext(ctx, "the audit is exported again", "sink", sink)
				return
			}
			p.Log.WarnContext(ctx, "the audit is not exported", "sink", sink, "problem", p.Scanner.Redact(problem))
		},
	})
	for _, problem := range sinks.Problems {
		p.Log.Warn(problem)
	}
	return sinks
}

// headLog writes the head of each row of the audit to the log, whichever process has added it.
func headLog(p *Parts) *auditsink.Log {
	return &auditsink.Log{Audit: p.Store.Audit, Tell: func(h record.Head) {
		p.Log.Info("audit head", "seq", h.Seq, "hash", h.Hash, "row_time", h.Time.UTC().Format(time.RFC3339Nano))
	}}
}

// repeatsTick is the interval at which counts of repeated refusals are recorded if they are due.
const repeatsTick = 10 * time.Second

// keepRecords removes what is old, deploys what was merged, exports the heads of the audit and writes them to the log,
// until ctx ends.
func keepRecords(ctx context.Context, p *Parts, background *sync.WaitGroup) {
	background.Go(func() { keepPruned(ctx, p) })
	background.Go(func() { keepDeployed(ctx, p) })
	background.Go(func() { p.Store.sinks.Keep(ctx) })
	background.Go(func() { p.Store.Ledger.KeepRepeats(ctx, time.Tick(repeatsTick)) })
}

// comparedAudit is the audit, whose verification compares it with what its sinks hold.
type comparedAudit struct {
	*store.Audit
	sinks *auditsink.Exporter
}

// ComparedAudit returns the audit with its comparisons.
func (p *Parts) ComparedAudit() comparedAudit { return comparedAudit{p.Store.Audit, p.Store.sinks} }

// Verify is like store.Audit.Verify. What the sinks have not taken yet is exported to them after they were found to
// agree.
func (a comparedAudit) Verify(ctx context.Context, expectHead string) (record.AuditReport, error) {
	report, err := a.Audit.Verify(ctx, expectHead)
	if err != nil {
		return report, err
	}
	return a.compareSinks(ctx, report, 0)
}

// VerifyAfter is like store.Audit.VerifyAfter. Of files it reads what was added since.
func (a comparedAudit) VerifyAfter(ctx context.Context, known record.AuditReport) (record.AuditReport, error) {
	report, err := a.Audit.VerifyAfter(ctx, known)
	if err != nil {
		return report, err
	}
	return a.compareSinks(ctx, report, known.HeadSeq)
}

// Exports says how far the heads were exported to each sink that is configured now.
func (a comparedAudit) Exports(ctx context.Context) (out []record.AuditExport, err error) {
	noted, err := a.Audit.Exports(ctx)
	for _, name := range a.sinks.Names() {
		export := record.AuditExport{Sink: name}
		for _, e := range noted {
			if e.Sink == name {
				export = e
			}
		}
		out = append(out, export)
	}
	return out, err
}

func (a comparedAudit) compareSinks(ctx context.Context, report record.AuditReport, after int64) (record.AuditReport,
	error) {
	checks, err := a.sinks.Check(ctx, after)
	if err != nil {
		return report, err
	}
	report.Checks = nil
	report = report.Against(checks...)
	if report.OK() {
		_ = a.sinks.Export(ctx) // told and noted
	}
	return report, nil
}

// Bounds of what a comparison with pull requests reads.
const (
	closedPullsBack = 90 * 24 * time.Hour // how far back those closed without a merge are looked at
	maxMergedPulls  = 20                  // merged ones, of each repository
	maxMarkedRepos  = 100
)

// CompareWithPulls compares the audit with the marks of pull requests at the providers, in every repository that
// something was proposed to: a few requests each.
func CompareWithPulls(ctx context.Context, p *Parts) ([]record.HeadCheck, error) {
	repos, err := markedRepositories(ctx, p)
	if err != nil {
		return nil, err
	}
	var out []record.HeadCheck
	for i, repo := range repos {
		against := "marks of pull requests in " + repo.Provider + ":" + repo.Owner + "/" + repo.Name
		if i >= maxMarkedRepos {
			out = append(out, auditsink.Unchecked("marks of pull requests in other repositories",
				fault.New(fault.LimitReached, "%d repositories are looked at, and %d more have pull requests", maxMarkedRepos,
					len(repos)-i)))
			break
		}
		check, err := compareWithMarks(ctx, p, repo, against)
		if err != nil {
			check = auditsink.Unchecked(against, err)
		}
		out = append(out, check)
	}
	if len(repos) == 0 {
		out = append(out, auditsink.Unchecked("marks of pull requests",
			fault.New(fault.NotFound, "nothing is known to have been proposed; name the repositories in CLAUDEOPS_REPOS")))
	}
	return out, nil
}

// markedRepositories returns the repositories with proposals, and those that the operator has named: the records may
// have been emptied.
func markedRepositories(ctx context.Context, p *Parts) ([]record.RepoName, error) {
	repos, err := p.Store.History.Repositories(ctx)
	for _, pattern := range p.Rules.Now().Policy.AllRepositories() {
		repo := record.RepoName{Provider: pattern.Provider, Owner: pattern.Owner, Name: pattern.Name}
		if strings.ContainsAny(repo.Owner+repo.Name, "*?[{") {
			continue
		}
		if repo.Provider == "" {
			repo.Provider = p.Flow.Reader().ProviderOf(repo.Owner, repo.Name)
		}
		if repo.Provider != "" && !slices.Contains(repos, repo) {
			repos = append(repos, repo)
		}
	}
	return repos, err
}

func compareWithMarks(ctx context.Context, p *Parts, repo record.RepoName, against string) (record.HeadCheck, error) {
	reader := p.Flow.Reader()
	found, err := reader.HeadsAt(ctx, repo.Provider, repo.Owner, repo.Name, time.Now().Add(-closedPullsBack))
	if err != nil {
		return record.HeadCheck{}, err
	}
	heads, err := mergedHeads(ctx, p, reader, repo)
	if err != nil {
		return record.HeadCheck{}, err
	}
	heads = append(heads, found.Heads...)
	check, err := auditsink.Compare(ctx, p.Store.Audit, against, heads)
	if err == nil && check.Heads == 0 {
		check.Result = record.HeadsUnchecked
		check.Detail = fmt.Sprintf(
			"no mark there has a head: %d are of older versions, and %d pull requests have none that our key has signed",
			found.Marks, found.Others)
	}
	return check, err
}

// mergedHeads reads the marks of the newest pull requests that are recorded as merged: a snapshot has none of them.
func mergedHeads(ctx context.Context, p *Parts, reader prflow.Reader, repo record.RepoName) (heads []record.Head,
	err error) {
	merged, err := p.Store.Pulls.Merged(ctx, repo, maxMergedPulls)
	if err != nil {
		return nil, err
	}
	for _, key := range merged {
		h, ok, err := reader.HeadOf(ctx, key.Provider, key.Owner, key.Repo, key.Number)
		if fault.CodeOf(err) == fault.NotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		if ok {
			heads = append(heads, h)
		}
	}
	return heads, nil
}

// pruneInterval is the interval at which a server removes records older than the retention.
const pruneInterval = 24 * time.Hour

// keepTranscripts returns how long what agents said in sessions is kept by the policy as it is now; 0 means for ever,
// as while the policy cannot be read.
func (p *Parts) keepTranscripts() time.Duration {
	effective, err := p.Rules.Effective()
	if err != nil {
		return 0
	}
	return effective.Server.SessionTranscripts
}

// logRemoved says how many rows of each kind were removed; nothing if there were none.
func logRemoved(log *slog.Logger, answer admin.RetentionAnswer) {
	var counts []any
	for _, removed := range answer.Removed {
		if removed.Rows > 0 {
			counts = append(counts, removed.Kind, removed.Rows)
		}
	}
	if len(counts) > 0 {
		log.Info("removed what is older than the retention", counts...)
	}
}

// keepPruned removes what is older than the retention, now and then daily, until ctx ends.
func keepPruned(ctx context.Context, p *Parts) {
	prune := newRetention(func() *Parts { return p }).Operation()
	for ; ctx.Err() == nil; transport.Sleep(ctx, pruneInterval) {
		if p.Cfg.Records.Retention == 0 && p.keepTranscripts() == 0 {
			continue
		}
		out, err := prune.Handle(ctx, operation.Call{Caller: operation.Caller{Actor: record.Actor{Door: record.DoorWeb,
			System: record.SystemRetention}},
			Arguments: []byte("{}")})
		if err != nil && ctx.Err() == nil {
			p.Log.Warn("not everything that is old was removed", "error", fault.From(err).Message)
		}
		if answer, ok := out.(admin.RetentionAnswer); ok {
			logRemoved(p.Log, answer)
		}
	}
}
