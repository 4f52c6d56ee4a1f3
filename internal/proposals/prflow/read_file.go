package prflow

import (
	"context"
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// ReadFileRequest asks for a file on the base branch, or on the branch of one of our own pull requests.
type ReadFileRequest struct {
	RepoOwner string `json:"repo_owner" required:"true" path:"owner" doc:"Repository owner"`
	RepoName  string `json:"repo_name" required:"true" path:"repo" doc:"Repository name"`
	Path      string `json:"path" required:"true" path:"path" doc:"From the repository's root"`
	Pull      int    `json:"pull,omitempty" minimum:"1" doc:"Our open pull request whose branch is read in place of the base branch"`
	CloneURL  string `json:"clone_url,omitempty" doc:"Settles the provider"`
}

// FileText is a file that was read. What create_pr takes as base_sha is BaseSHA.
type FileText struct {
	Path      string   `json:"path"`
	Pull      int      `json:"pull,omitempty" doc:"The pull request whose branch has it; without it the base branch has"`
	Branch    string   `json:"branch,omitempty" doc:"Left out for a default branch whose name the host does not tell along with it"`
	Commit    string   `json:"commit" doc:"Of the branch"`
	BaseSHA   string   `json:"base_sha" doc:"What create_pr takes as base_sha"`
	Text      string   `json:"text"`
	Lacks     []string `json:"lacks,omitempty" doc:"What was taken out of the text: then change the file by edits, not by the whole content"`
	Untrusted string   `json:"untrusted"`
}

// fileReader reads files for agents, and what pull requests of ours change.
type fileReader struct {
	Reader
	authority Authority
	shower    textShower
	history   History
	resolve   func(gitprovider.RepoRef) (gitprovider.Resolution, error)
}

func (s *Service) newFileReader() fileReader {
	return fileReader{s.Reader(), s.CurrentAuthority(), textShower{s.Secrets}, s.History, s.Registry.Resolve}
}

// readable returns the scope of what may be read: what the tier may propose, and for tier 1, which proposes nothing,
// what tier 2 may.
func (a Authority) readable() gitprovider.Scope {
	return a.Policy.Scope.At(max(a.Tier, gitprovider.TierInvestigate))
}

// mayRead says why a path may not be read; nil if it may. changed are the files of a pull request of ours, which may be
// read if any tier may propose them.
func (a Authority) mayRead(path string, changed []string) *fault.Violation {
	verdict := a.readable().Check(path)
	for _, c := range changed {
		if c == path && !verdict.Allowed {
			verdict = a.Policy.Scope.At(gitprovider.TierRemediate).Check(path)
		}
	}
	if verdict.Reason == nil {
		return nil
	}
	v := *verdict.Reason
	switch folder := strings.TrimSuffix(path, "/"); {
	case isFolderOf(a.readable(), folder):
		v.Message = quote(path) + " is a folder, or no path of a file that may be read"
		v.Suggestion = "list its files: " + resourceScheme + "OWNER/REPO/files?glob=" + folder + "/** (list_files)"
	case v.Code == fault.TierDenied:
		v.Suggestion = "leave this file to a session of a higher tier"
	case v.Rule != gitprovider.RuleCanonicalPath:
		v.Suggestion = "read only what may be proposed: " + joinLimited(a.Policy.Scope.Allow())
	}
	return &v
}

// readableRepo returns a repository that may be read. misconfigured if the rules that say so cannot be known.
func (f fileReader) readableRepo(owner, name, cloneURL string) (gitprovider.Resolution, error) {
	if why := f.authority.Unknown; why != "" {
		return gitprovider.Resolution{}, fault.New(fault.Misconfigured,
			"%s; no file can be read until the operator corrects it", why)
	}
	return f.findRepository(owner, name, cloneURL, f.resolve)
}

// readFile reads one file. Every tier may ask for it, and sees what the scope lets it propose; see Authority.readable.
// not_found for a file that is not there, conflict for a pull request that is not open any more, content_denied for a
// file that is not text or has more than MaxShownFile bytes.
func (f fileReader) readFile(ctx context.Context, req ReadFileRequest) (FileText, error) {
	at, err := f.readableRepo(req.RepoOwner, req.RepoName, req.CloneURL)
	if err != nil {
		return FileText{}, err
	}
	place, err := f.findBranch(ctx, at, req)
	if err != nil {
		return FileText{}, err
	}
	path, err := gitprovider.ParsePath(req.Path)
	if err != nil { // it is in the scope, so this is a fault of ours
		return FileText{}, fault.Wrap(err, fault.Internal, "a path in the scope is not canonical")
	}
	snapshot, err := f.snapshotFiles(ctx, at, place, []gitprovider.Path{path})
	if err != nil {
		return FileText{}, err
	}
	entry, v := fileAt(snapshot.Tree, path, place.name)
	if v != nil {
		return FileText{}, fault.Refusal([]fault.Violation{*v})
	}
	content, known := snapshot.Contents[path]
	shown, err := f.shower.redactFile(ctx, req.Path, content, known)
	if err != nil {
		return FileText{}, err
	}
	return FileText{
		Path: req.Path, Pull: req.Pull, Branch: clean(snapshot.Base, maxTitle), Commit: snapshot.BaseCommit,
		BaseSHA: entry.ID,
		Text:    shown.text, Lacks: shown.lacks, Untrusted: untrustedFile,
	}, nil
}

// readBranch is a branch that is read.
type readBranch struct {
	query string // its name; "" for the default branch
	name  string // for messages
	pull  int    // the pull request whose branch it is; 0 for a base branch
}

// findBranch finds the branch that a request is about, and refuses paths that may not be read there.
func (f fileReader) findBranch(ctx context.Context, at gitprovider.Resolution, req ReadFileRequest) (readBranch,
	error) {
	if req.Pull == 0 {
		if v := f.authority.mayRead(req.Path, nil); v != nil {
			return readBranch{}, fault.Refusal([]fault.Violation{*v})
		}
		return readBranch{query: at.BaseBranch, name: "the base branch"}, nil
	}
	// no pull request can change that, so none is searched
	if v := f.authority.mayRead(req.Path, []string{req.Path}); v != nil {
		return readBranch{}, fault.Refusal([]fault.Violation{*v})
	}
	status, err := at.Provider.Status(ctx, at.Repo, req.Pull)
	if err != nil {
		return readBranch{}, err
	}
	if err := f.isOurs(at, status.PullRequest); err != nil {
		return readBranch{}, err
	}
	if v := f.authority.mayRead(req.Path, status.Paths); v != nil {
		return readBranch{}, fault.Refusal([]fault.Violation{*v})
	}
	return branchOf(status.PullRequest), nil
}

// isOurs refuses a pull request that lacks our mark, and one that is not open.
func (f fileReader) isOurs(at gitprovider.Resolution, pr gitprovider.PullRequest) error {
	marks, err := f.marks(at.Provider.Name(), at.Repo)
	if err != nil {
		return err
	}
	_, isTrue := marks.firstSigned(pr)
	switch {
	case !isTrue || pr.Fork || gitprovider.CheckOurs(pr.Branch) != nil:
		return fault.New(fault.NotFound, "%s has no pull request of ours with the number %d: others are read at the forge",
			at.Repo, pr.Number)
	case pr.State != gitprovider.StateOpen:
		return fault.New(fault.Conflict, "#%d is %s, and its branch is not read any more; read the file on the base branch",
			pr.Number, pr.State)
	}
	return nil
}

// snapshotFiles reads files of a place. The host may know the repository by another name: that must be on the list,
// too.
func (f fileReader) snapshotFiles(ctx context.Context, at gitprovider.Resolution, from readBranch,
	paths []gitprovider.Path) (*gitprovider.Snapshot, error) {
	rules, name := f.authority.Policy, at.Provider.Name()
	// Whether a base branch may be targeted depends on the name of the default branch, which only the whole look tells for
	// certain.
	whole := from.pull == 0 && len(rules.Targets.BaseBranches) > 0
	snapshot, err := at.Provider.Snapshot(ctx, gitprovider.SnapshotQuery{
		Repo: at.Repo, Base: from.query, Paths: paths, Contents: true, FilesOnly: !whole,
	})
	switch {
	case from.pull > 0 && fault.CodeOf(err) == fault.NotFound:
		return nil, fault.Wrap(err, fault.NotFound, "the branch of #%d is gone; its files cannot be read", from.pull)
	case err != nil:
		return nil, err
	}
	var violations []fault.Violation
	if v := notListed(rules, name, snapshot.Repo); v != nil {
		violations = append(violations, *v)
	}
	pin, _ := rules.PinFor(at.Repo.Owner, at.Repo.Name)
	switch {
	case from.pull > 0:
	case strings.HasPrefix(snapshot.Base, gitprovider.BranchPrefix):
		violations = append(violations, baseDenied(snapshot.Base, "is a branch of another proposal", snapshot.DefaultBranch))
	case whole && pin.BaseBranch == "" && !rules.AllowsBase(snapshot.Base, snapshot.DefaultBranch, at.BaseBranch):
		violations = append(violations, baseDenied(snapshot.Base, "may not be targeted under the operator's policy",
			snapshot.DefaultBranch))
	}
	if len(violations) > 0 {
		return nil, fault.Refusal(violations)
	}
	return snapshot, nil
}

// fileAt returns the entry of a plain file below plain folders, or why there is none.
func fileAt(tree gitprovider.Tree, path gitprovider.Path, where string) (gitprovider.Entry, *fault.Violation) {
	for _, name := range append(path.Ancestors(), path.String()) {
		entry, exists := tree[name]
		isLast := name == path.String()
		switch {
		case !exists:
			return entry, &fault.Violation{
				Code: fault.NotFound, Path: path.String(), Rule: "missing",
				Message:    fmt.Sprintf("%s does not exist on %s", path, where),
				Suggestion: "correct the path, or create the file",
			}
		case isLast && entry.Kind != gitprovider.KindFile, !isLast && entry.Kind != gitprovider.KindDir:
			return entry, &fault.Violation{
				Code: fault.ScopeDenied, Path: path.String(), Rule: "not-a-file", Final: true,
				Message: fmt.Sprintf("%s is a %s on %s, and only plain files in plain folders are read", name, entry.Kind, where),
			}
		}
	}
	return tree[path.String()], nil
}

// afterReadingFile names the next step after a refused read of a file, where it differs from other reads.
func afterReadingFile(e *fault.Error) string {
	switch e.Code {
	case fault.ScopeDenied, fault.TierDenied, fault.ContentDenied:
		if !final(e) {
			return "correct the path as it says and call once more"
		}
		return "do not call again for this file: report what is needed of it, for a person"
	case fault.Conflict:
		return "get_pr_status says how it ended; the base branch has what was merged"
	case fault.NotFound:
		return "correct what the message names and call once more; a file that does not exist can be created"
	}
	return afterReading(e)
}

// branchOf returns the branch of a pull request.
func branchOf(pr gitprovider.PullRequest) readBranch {
	return readBranch{query: pr.Branch, name: fmt.Sprintf("the branch of #%d", pr.Number), pull: pr.Number}
}
