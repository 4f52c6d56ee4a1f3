package prflow

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
)

// resourceScheme begins the addresses of what can be read.
const resourceScheme = "claudeops://"

const typeJSON = "application/json"

// maxListed bounds how many resources are named.
const maxListed = 60

// KnownFiles are files whose names are known without asking anybody: those of an open pull request of ours, or of a
// working copy.
type KnownFiles struct {
	Provider    string // that has the repository; "" if it is not known
	Owner, Repo string
	Pull        int // 0: files on the base branch
	Paths       []string
}

// Resources returns the resources for files and differences. known lists files whose names are known without a request;
// nil for none.
func Resources(service func() *Service, known func(ctx context.Context) []KnownFiles) *operation.Resources {
	const text = "text/plain"
	return &operation.Resources{
		Templates: []operation.Resource{
			{URI: resourceScheme + "{owner}/{repo}/file/{+path}", Name: "file", Type: text,
				Description: "A file that may be proposed, as the base branch has it, with the base_sha that create_pr takes"},
			{URI: resourceScheme + "{owner}/{repo}/files{?glob,after}", Name: "files", Type: typeJSON,
				Description: "Which files there are on the base branch that may be proposed: path, base_sha and bytes, a page at " +
					"a time; glob such as **/*.md"},
			{URI: resourceScheme + "{owner}/{repo}/pull/{number}/file/{+path}", Name: "pull-file", Type: text,
				Description: "A file as the branch of our own open pull request has it: read it before create_pr with revises"},
			{URI: resourceScheme + "{owner}/{repo}/pull/{number}/diff", Name: "pull-diff", Type: "text/x-diff",
				Description: "What our own open pull request changes"},
		},
		List: func(ctx context.Context) []operation.Resource {
			if known == nil {
				return nil
			}
			return service().listResources(known(ctx))
		},
		Read: func(ctx context.Context, call operation.Call, uri string) (operation.Content, error) {
			return service().AtMost(call.Ceiling).readResource(ctx, call.Caller, uri)
		},
	}
}

// resourceAddress is a parsed resource address.
type resourceAddress struct {
	owner, repo string
	pull        int
	path        string // "" for a difference, and for a list
	list        bool   // of files
	glob, after string // of a list
}

// String returns the one spelling of an address.
func (a resourceAddress) String() string {
	out := resourceScheme + url.PathEscape(a.owner) + "/" + url.PathEscape(a.repo)
	if a.pull > 0 {
		out += "/pull/" + strconv.Itoa(a.pull)
	}
	switch {
	case a.list:
		query := ""
		for _, q := range [][2]string{{"glob", a.glob}, {"after", a.after}} {
			if q[1] != "" {
				query += map[bool]string{true: "?", false: "&"}[query == ""] + q[0] + "=" + url.QueryEscape(q[1])
			}
		}
		return out + "/files" + query
	case a.path == "":
		return out + "/diff"
	}
	return out + "/file/" + strings.ReplaceAll(url.PathEscape(a.path), "%2F", "/")
}

// parseAddress parses a resource address. Percent-encoding is decoded once, and the result is validated like any other
// argument. ok is false for an invalid address and for a second spelling of a valid one: each resource has exactly one.
func parseAddress(uri string) (a resourceAddress, ok bool) {
	if a, ok := parseListAddress(uri); ok {
		return a, true
	}
	rest, ok := strings.CutPrefix(uri, resourceScheme)
	if !ok || strings.ContainsAny(rest, "?#") {
		return a, false
	}
	parts := strings.SplitN(rest, "/", 3)
	if len(parts) < 3 {
		return a, false
	}
	what := parts[2]
	if inPull, isPull := strings.CutPrefix(what, "pull/"); isPull {
		number, below, _ := strings.Cut(inPull, "/")
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || strconv.Itoa(n) != number {
			return a, false
		}
		a.pull, what = n, below
	}
	path, isFile := strings.CutPrefix(what, "file/")
	var errs [3]error
	a.owner, errs[0] = url.PathUnescape(parts[0])
	a.repo, errs[1] = url.PathUnescape(parts[1])
	if isFile {
		a.path, errs[2] = url.PathUnescape(path)
	}
	isDiff := a.pull > 0 && what == "diff"
	bad := slices.ContainsFunc(errs[:], func(err error) bool { return err != nil })
	return a, !bad && a.owner != "" && a.repo != "" && (isDiff || a.path != "") && a.String() == uri
}

// parseListAddress reads the address of a list of files. What a client puts into its query may be escaped or not.
func parseListAddress(uri string) (a resourceAddress, ok bool) {
	rest, ours := strings.CutPrefix(uri, resourceScheme)
	rest, query, _ := strings.Cut(rest, "?")
	parts := strings.Split(rest, "/")
	values, err := url.ParseQuery(query)
	if !ours || len(parts) != 3 || parts[2] != "files" || err != nil || strings.Contains(query, "#") {
		return a, false
	}
	for name, given := range values {
		if name != "glob" && name != "after" || len(given) != 1 {
			return a, false
		}
	}
	var errs [2]error
	a = resourceAddress{list: true, glob: values.Get("glob"), after: values.Get("after")}
	a.owner, errs[0] = url.PathUnescape(parts[0])
	a.repo, errs[1] = url.PathUnescape(parts[1])
	return a, errs[0] == nil && errs[1] == nil && a.owner != "" && a.repo != ""
}

// listResource lists files, in the place of a folder that was read too.
func (s *Service) listResource(ctx context.Context, caller operation.Caller, at resourceAddress) (operation.Content,
	error) {
	raw, err := json.Marshal(ListFilesRequest{RepoOwner: at.owner, RepoName: at.repo, Glob: at.glob, After: at.after})
	if err != nil {
		return operation.Content{}, err
	}
	list, err := s.ListFiles(ctx, caller, raw)
	if err != nil {
		return operation.Content{}, err
	}
	text, err := json.Marshal(list.Files)
	if err != nil {
		return operation.Content{}, err
	}
	note := fmt.Sprintf("%d files that may be proposed on the base branch at %s. %s.", list.Total, short(list.Commit),
		list.Untrusted)
	about := map[string]any{"commit": list.Commit, "total": list.Total, "untrusted": list.Untrusted}
	if list.Next != "" {
		at.after = list.Next
		about["next"] = at.String()
		note += "\nnote: the next page is " + at.String()
	}
	if list.Incomplete {
		about["incomplete"] = true
		note += "\nnote: there are more files than the provider tells of"
	}
	return operation.Content{Text: string(text), Type: typeJSON, About: about, Note: note}, nil
}

func (s *Service) readResource(ctx context.Context, caller operation.Caller, uri string) (operation.Content, error) {
	at, ok := parseAddress(uri)
	if !ok {
		return operation.Content{}, s.Reader().readFailure(&fault.Error{
			Code: fault.InvalidArgument, Message: quote(uri) + " is not an address of a file, of a list of files or of a difference",
			Next: "read " + resourceScheme + "OWNER/REPO/file/PATH, .../files?glob=GLOB, .../pull/NUMBER/file/PATH or .../pull/NUMBER/diff",
		})
	}
	if folder := strings.TrimSuffix(at.path, "/"); at.pull == 0 && folder != "" &&
		isFolderOf(s.CurrentAuthority().readable(), folder) && s.newFileReader().authority.mayRead(at.path, nil) != nil {
		at = resourceAddress{owner: at.owner, repo: at.repo, list: true, glob: folder + "/**"}
	}
	if at.list {
		return s.listResource(ctx, caller, at)
	}
	if at.path == "" {
		raw, err := json.Marshal(ReadDiffRequest{RepoOwner: at.owner, RepoName: at.repo, PRNumber: at.pull})
		if err != nil {
			return operation.Content{}, err
		}
		diff, err := s.ReadDiff(ctx, caller, raw)
		note := fmt.Sprintf("#%d at %s against %s at %s. %s.", at.pull, short(diff.Commit), diff.Base, short(diff.BaseCommit),
			diff.Untrusted)
		text := diff.Diff
		diff.Diff = ""
		return operation.Content{Text: text, Type: "text/x-diff", About: aboutDiff(diff), Note: noted(note, diff.Notes)}, err
	}
	return s.readFileResource(ctx, caller, at)
}

func (s *Service) readFileResource(ctx context.Context, caller operation.Caller, at resourceAddress) (operation.Content,
	error) {
	raw, err := json.Marshal(ReadFileRequest{RepoOwner: at.owner, RepoName: at.repo, Path: at.path, Pull: at.pull})
	if err != nil {
		return operation.Content{}, err
	}
	file, err := s.ReadFile(ctx, caller, raw)
	where := "the base branch"
	if at.pull > 0 {
		where = fmt.Sprintf("the branch of #%d", at.pull)
	}
	note := fmt.Sprintf("%s on %s: base_sha %s, commit %s. %s.", file.Path, where, file.BaseSHA, file.Commit,
		file.Untrusted)
	return operation.Content{Text: file.Text, Type: "text/plain", About: aboutFile(file), Note: noted(note, file.Lacks)},
		err
}

// aboutFile and aboutDiff return the metadata of what was read, without its text.
func aboutFile(f FileText) map[string]any {
	about := map[string]any{"base_sha": f.BaseSHA, "commit": f.Commit, "untrusted": f.Untrusted}
	if len(f.Lacks) > 0 {
		about["lacks"] = f.Lacks
	}
	return about
}

func aboutDiff(d PullDiff) map[string]any {
	about := map[string]any{"base_commit": d.BaseCommit, "commit": d.Commit, "untrusted": d.Untrusted}
	if len(d.Notes) > 0 {
		about["notes"] = d.Notes
	}
	return about
}

func noted(note string, more []string) string {
	for _, m := range more {
		note += "\nnote: " + m
	}
	return note
}

// listResources names what may be read of files that are known, at most maxListed: the differences of pull requests,
// then files.
func (s *Service) listResources(known []KnownFiles) (out []operation.Resource) {
	if s.CurrentAuthority().Unknown != "" {
		return nil
	}
	known = slices.DeleteFunc(known, func(k KnownFiles) bool {
		at, err := s.Registry.Resolve(gitprovider.RepoRef{Owner: k.Owner, Name: k.Repo})
		return err != nil || k.Provider != "" && at.Provider.Name() != k.Provider ||
			notListed(s.CurrentAuthority().Policy, at.Provider.Name(), at.Repo) != nil
	})
	add := func(a resourceAddress, kind, about string) {
		if len(out) < maxListed {
			uri := a.String()
			out = append(out, operation.Resource{
				URI: uri, Name: strings.TrimPrefix(uri, resourceScheme), Description: clean(about, maxTitle), Type: kind,
			})
		}
	}
	for _, k := range known {
		if k.Pull > 0 {
			add(resourceAddress{owner: k.Owner, repo: k.Repo, pull: k.Pull}, "text/x-diff", fmt.Sprintf("What #%d changes",
				k.Pull))
		}
	}
	for _, k := range known {
		for _, path := range k.Paths {
			if v := s.CurrentAuthority().mayRead(path, map[bool][]string{true: k.Paths}[k.Pull > 0]); v == nil {
				add(resourceAddress{owner: k.Owner, repo: k.Repo, pull: k.Pull, path: path}, "text/plain", "")
			}
		}
	}
	return out
}
