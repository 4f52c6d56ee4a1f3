package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/files"
)

// maxInput bounds what the command line reads from files and stdin, in bytes; an MCP message has the same bound.
const maxInput = 4 << 20

func prCommand(a *commandLine) *cobra.Command {
	return group("pr", "Propose, list and read pull requests", prCreateCommand(a), prListCommand(a), prStatusCommand(a),
		prFileCommand(a), prFilesCommand(a), prDiffCommand(a), prPromoteCommand(a))
}

type prCreateOptions struct {
	repo, cloneURL, base, changeType string
	title, body, bodyFile, from      string
	files                            fileFlags
	preview                          string
	revision                         revisionFlags
}

// revisionFlags say what is revised, and what is answered there.
type revisionFlags struct {
	number  int
	reply   string
	replies []string // each as ID=TEXT
}

// fileFlags name the files of a change, each as PATH=VALUE or PATH.
type fileFlags struct{ create, update, edit, remove, baseSHA []string }

func prCreateCommand(a *commandLine) *cobra.Command {
	var o prCreateOptions
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Propose a change as one pull request",
		Example: "  claudeops pr create --repo joe/home-cluster --title 'Check disk inodes' --body-file why.md \\\n" +
			"      --create checks/inodes.md=./inodes.md --edit checks/load.md=./edits.json --delete checks/old.md\n" +
			"  claudeops pr create --from request.json     # the arguments of the create_pr tool; - reads stdin",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return runPRCreate(a, cmd, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.repo, "repo", "", repoUsage)
	f.StringVar(&o.cloneURL, "clone-url", "", "clone URL, to settle the provider")
	f.StringVar(&o.base, "base", "", "base branch (default: the repository's default branch)")
	f.IntVar(&o.revision.number, "revises", 0,
		"number of our open pull request that gets the change as one more commit, after its review")
	f.StringVar(&o.revision.reply, "reply", "",
		"with --revises: text that answers the review; without files it is posted alone")
	f.StringArrayVar(&o.revision.replies, "reply-to", nil,
		"with --revises: answer to a comment on a line, as ID=TEXT; may be repeated")
	f.StringVar(&o.preview, "preview", "", "in a dry run: full, or summary without body and difference (default full)")
	f.StringVar(&o.changeType, "type", "", "check, playbook, skill, manifest or fix (default fix)")
	f.StringVar(&o.title, "title", "", fmt.Sprintf("title, at most %d characters", prflow.MaxTitleRunes()))
	f.StringVar(&o.body, "body", "", "body in markdown")
	f.StringVar(&o.bodyFile, "body-file", "", "file with the body; - reads stdin")
	f.StringArrayVar(&o.files.create, "create", nil, "new file, as PATH=FILE; may be repeated")
	f.StringArrayVar(&o.files.update, "update", nil, "changed file, as PATH=FILE; may be repeated")
	f.StringArrayVar(&o.files.edit, "edit", nil,
		"file to change in parts, as PATH=FILE with [{\"old\": ..., \"new\": ...}] in FILE; may be repeated")
	f.StringArrayVar(&o.files.remove, "delete", nil, "file to delete; may be repeated")
	f.StringArrayVar(&o.files.baseSHA, "base-sha", nil,
		"version of a changed file that you have read, as PATH=BLOB with git's blob id; may be repeated")
	f.StringVar(&o.from, "from", "", "file with the whole request as JSON; - reads stdin")
	return cmd
}

func runPRCreate(a *commandLine, cmd *cobra.Command, o prCreateOptions) error {
	raw, err := createRequest(a, o)
	if err != nil {
		return err
	}
	result, err := askFor[prflow.CreateResult](cmd.Context(), a, prflow.ToolCreatePR, raw)
	if err != nil {
		return err
	}
	return a.print(result, func(w *strings.Builder) { describeCreated(w, result) })
}

func createRequest(a *commandLine, o prCreateOptions) ([]byte, error) {
	switch {
	case o.from != "" && !reflect.DeepEqual(o, prCreateOptions{from: o.from}):
		return nil, app.Usage(errors.New("--from holds the whole request: leave the other flags out"))
	case o.from != "":
		return a.readInput(o.from)
	case o.body != "" && o.bodyFile != "":
		return nil, app.Usage(errors.New("give the body with --body or with --body-file, not both"))
	}
	owner, name, err := a.repository(o.repo)
	if err != nil {
		return nil, err
	}
	req := prflow.CreateRequest{
		RepoOwner: owner, RepoName: name, CloneURL: o.cloneURL, BaseBranch: o.base, ChangeType: o.changeType,
		Title: o.title, Body: o.body, Revises: o.revision.number, Reply: o.revision.reply, Files: []prflow.FileRequest{},
		Preview: cmp.Or(o.preview, prflow.PreviewFull),
	}
	if o.bodyFile != "" {
		text, err := a.readInput(o.bodyFile)
		if err != nil {
			return nil, err
		}
		req.Body = string(text)
	}
	for _, list := range []struct {
		action gitprovider.Action
		specs  []string
	}{{gitprovider.ActionCreate, o.files.create}, {gitprovider.ActionUpdate, o.files.update}} {
		for _, spec := range list.specs {
			file, err := fileRequest(a, list.action, spec)
			if err != nil {
				return nil, err
			}
			req.Files = append(req.Files, file)
		}
	}
	for _, spec := range o.files.edit {
		file, err := editRequest(a, spec)
		if err != nil {
			return nil, err
		}
		req.Files = append(req.Files, file)
	}
	for _, path := range o.files.remove {
		req.Files = append(req.Files, prflow.FileRequest{Path: path, Action: string(gitprovider.ActionDelete)})
	}
	if err := setBases(req.Files, o.files.baseSHA); err != nil {
		return nil, err
	}
	for _, spec := range o.revision.replies {
		id, text, ok := strings.Cut(spec, "=")
		if !ok || id == "" || text == "" {
			return nil, app.Usage(fmt.Errorf("--reply-to %q is not of the form ID=TEXT", spec))
		}
		req.Replies = append(req.Replies, prflow.ReplyRequest{Comment: id, Text: text})
	}
	return json.Marshal(req)
}

// setBases gives files the versions that PATH=BLOB name.
func setBases(files []prflow.FileRequest, specs []string) error {
	for _, spec := range specs {
		path, blob, ok := strings.Cut(spec, "=")
		at := slices.IndexFunc(files, func(f prflow.FileRequest) bool { return f.Path == path })
		switch {
		case !ok || blob == "":
			return app.Usage(fmt.Errorf("--base-sha %q is not of the form PATH=BLOB", spec))
		case at < 0:
			return app.Usage(fmt.Errorf("--base-sha %q: no --update, --edit or --delete names the file", spec))
		}
		files[at].BaseSHA = blob
	}
	return nil
}

func fileRequest(a *commandLine, action gitprovider.Action, spec string) (prflow.FileRequest, error) {
	path, text, err := a.readFileFlag(string(action), spec)
	if err != nil {
		return prflow.FileRequest{}, err
	}
	content := string(text)
	return prflow.FileRequest{Path: path, Action: string(action), Content: &content}, nil
}

func editRequest(a *commandLine, spec string) (prflow.FileRequest, error) {
	path, text, err := a.readFileFlag("edit", spec)
	if err != nil {
		return prflow.FileRequest{}, err
	}
	f := prflow.FileRequest{Path: path, Action: string(gitprovider.ActionUpdate)}
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	if err := in.Decode(&f.Edits); err != nil || len(f.Edits) == 0 || in.More() {
		return f, app.Usage(fmt.Errorf("--edit %q: the file holds no JSON list of {\"old\": ..., \"new\": ...}", spec))
	}
	return f, nil
}

// readFileFlag reads what PATH=FILE names.
func (a *commandLine) readFileFlag(flag, spec string) (path string, text []byte, err error) {
	path, file, ok := strings.Cut(spec, "=")
	if !ok || path == "" || file == "" {
		return "", nil, app.Usage(fmt.Errorf("--%s %q is not of the form PATH=FILE", flag, spec))
	}
	text, err = a.readInput(file)
	return path, text, err
}

// readInput reads a file, or stdin for "-", up to maxInput.
func (a *commandLine) readInput(name string) ([]byte, error) {
	in := a.streams.In
	if name != "-" {
		f, err := files.OpenInput(name)
		if err != nil {
			return nil, unreadable(name, err)
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxInput+1))
	if err != nil {
		return nil, unreadable(name, err)
	}
	if len(text) > maxInput {
		return nil, app.Usage(fmt.Errorf("%s is larger than %d bytes", name, maxInput))
	}
	return text, nil
}

func splitRepo(repo string) (owner, name string, err error) {
	owner, name, ok := strings.Cut(repo, "/")
	if !ok {
		return "", "", app.Usage(errors.New("--repo must be given as owner/name"))
	}
	return owner, name, nil
}

func describeCreated(w *strings.Builder, r prflow.CreateResult) {
	switch {
	case r.Reused:
		fmt.Fprintf(w, "#%d is open with this very change: %s\n", r.Number, r.URL)
	case r.Revised && !r.DryRun && len(r.Files) == 0:
		fmt.Fprintf(w, "Answered #%d: %s\n  nothing was changed\n", r.Number, r.URL)
	case r.Revised && !r.DryRun:
		fmt.Fprintf(w, "Revised #%d: %s\n  branch %s\n  commit %s\n", r.Number, r.URL, r.Branch, r.Commit)
	case r.DryRun:
		fmt.Fprintf(w, "Dry run: nothing was written. Branch %s would be made from %s.\n\n", r.Branch, r.Preview.Base)
		for _, call := range r.Preview.Calls {
			sentences(w, [][]string{{"", "would " + call}})
		}
		if r.Preview.Diff != "" {
			fmt.Fprintf(w, "\n%s", r.Preview.Diff)
		}
	default:
		fmt.Fprintf(w, "Opened #%d: %s\n  branch %s\n  commit %s\n", r.Number, r.URL, r.Branch, r.Commit)
	}
	for _, l := range r.Lines {
		if l.Unknown {
			fmt.Fprintf(w, "  %s: too large to be compared\n", l.Path)
			continue
		}
		fmt.Fprintf(w, "  %s +%d -%d\n", l.Path, l.Added, l.Removed)
	}
	if r.Replies > 0 {
		fmt.Fprintf(w, "  replies posted: %d\n", r.Replies)
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(w, "warning: %s\n", warning)
	}
}

func prStatusCommand(a *commandLine) *cobra.Command {
	return aboutPull(a, &cobra.Command{Use: "status NUMBER", Short: "Show a pull request's state, reviews and checks"},
		func(ctx context.Context, req prflow.ReadDiffRequest) error {
			result, err := askFor[prflow.StatusResult](ctx, a, prflow.ToolGetPRStatus, req)
			if err != nil {
				return err
			}
			known := a.factsOf(ctx, record.PullKey{Provider: a.providerOf(req.RepoOwner, req.RepoName), Owner: req.RepoOwner,
				Repo: req.RepoName, Number: req.PRNumber}, "")
			return a.print(result, func(w *strings.Builder) { describeStatus(w, result); describeFacts(w, known) })
		})
}

// aboutPull completes a command about one pull request: its argument is the number, and flags name the repository. Each
// operation about one takes the fields of a ReadDiffRequest.
func aboutPull(a *commandLine, cmd *cobra.Command,
	run func(ctx context.Context, req prflow.ReadDiffRequest) error) *cobra.Command {
	var repo string
	var req prflow.ReadDiffRequest
	cmd.Args = usageArgs(cobra.ExactArgs(1))
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if req.RepoOwner, req.RepoName, err = a.repository(repo); err != nil {
			return err
		}
		if req.PRNumber, err = prNumber(args[0]); err != nil {
			return err
		}
		return run(cmd.Context(), req)
	}
	cmd.Flags().StringVar(&repo, "repo", "", repoUsage)
	cmd.Flags().StringVar(&req.CloneURL, "clone-url", "", "clone URL, to settle the provider")
	return cmd
}

func prNumber(arg string) (int, error) {
	number, err := strconv.Atoi(strings.TrimPrefix(arg, "#"))
	if err != nil || number < 1 {
		return 0, app.Usage(fmt.Errorf("%q is not a pull request number", arg))
	}
	return number, nil
}

func describeStatus(w *strings.Builder, r prflow.StatusResult) {
	mergeable := "unknown"
	if r.Mergeable != nil {
		mergeable = strconv.FormatBool(*r.Mergeable)
	}
	fmt.Fprintf(w, "#%d %s\n  %s\n", r.Number, r.Title, r.URL)
	fmt.Fprintf(w, "  state %s, mergeable %s, checks %s\n", r.State, mergeable, r.Checks.State)
	for _, name := range r.Checks.Failing {
		fmt.Fprintf(w, "  failing: %s\n", name)
	}
	if why, no := strings.CutPrefix(r.Revise, "no: "); no {
		sentences(w, [][]string{{"", "cannot be revised now: " + why}})
	} else if r.Revise != "" {
		fmt.Fprintf(w, "  can be revised now: pr create --revises %d\n", r.Number)
	}
	for _, review := range r.Reviews {
		fmt.Fprintf(w, "  %s %s %s\n", review.SubmittedAt, review.Author, review.State)
		describeWords(w, "    | ", review.Body)
		for _, c := range review.Comments {
			fmt.Fprintf(w, "    %s\n", lineName(c))
			describeWords(w, "      | ", c.Body)
		}
		if review.LeftOut > 0 {
			fmt.Fprintf(w, "    and %d older comments on lines\n", review.LeftOut)
		}
	}
}

// describeWords writes what somebody said, each line behind a mark.
func describeWords(w *strings.Builder, mark, words string) {
	for _, line := range strings.Split(strings.TrimSpace(words), "\n") {
		if line != "" {
			fmt.Fprintf(w, "%s%s\n", mark, line)
		}
	}
}

// lineName says where a comment stands, who wrote it if not the reviewer, and facts to know about it.
func lineName(c prflow.LineEntry) string {
	name := c.Path
	if c.Line > 0 {
		name += fmt.Sprintf(":%d", c.Line)
	}
	if c.Before {
		name += " before the change"
	}
	if c.Author != "" {
		name += " by " + c.Author
	}
	for _, mark := range []struct {
		is   bool
		word string
	}{{c.Outdated, "outdated"}, {c.Resolved, "resolved"}} {
		if mark.is {
			name += ", " + mark.word
		}
	}
	return name
}

func prListCommand(a *commandLine) *cobra.Command {
	var repo, cloneURL, state string
	cmd := &cobra.Command{
		Use: "list", Short: "List the open pull requests labelled claude-ops", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			owner, name, err := a.repository(repo)
			if err != nil {
				return err
			}
			result, err := listAll(cmd.Context(), a, prflow.ListRequest{RepoOwner: owner, RepoName: name, CloneURL: cloneURL,
				State: state})
			if err != nil {
				return err
			}
			tags := a.tagsOf(cmd.Context(), a.providerOf(owner, name), owner, name)
			return a.print(asList(result), func(w *strings.Builder) { describeList(w, result, tags) })
		},
	}
	cmd.Flags().StringVar(&repo, "repo", "", repoUsage)
	cmd.Flags().StringVar(&cloneURL, "clone-url", "", "clone URL, to settle the provider")
	cmd.Flags().StringVar(&state, "state-of-review", "",
		"only those of ours whose reviews stand so: none, approved or changes_requested")
	return cmd
}

// listAll reads all pages.
func listAll(ctx context.Context, a *commandLine, req prflow.ListRequest) (all prflow.ListResult, err error) {
	req.Limit, ctx = 100, prflow.OneListing(ctx)
	for {
		page, err := askFor[prflow.ListResult](ctx, a, prflow.ToolListPRs, req)
		if err != nil {
			return all, err
		}
		page.PRs, page.Warnings = append(all.PRs, page.PRs...), append(all.Warnings, page.Warnings...)
		all = page
		if page.Next <= req.After { // on the last page there is none
			return all, nil
		}
		req.After = page.Next
	}
}

func describeList(w *strings.Builder, r prflow.ListResult, tags map[int]string) {
	if len(r.PRs) == 0 {
		w.WriteString("No open pull requests labelled claude-ops.\n")
		return
	}
	rows := [][]string{{"PULL", "OPENED", "REVIEW", "TITLE", "WOULD", "FILES"}}
	for _, pr := range r.PRs {
		rows = append(rows, []string{"#" + strconv.Itoa(pr.Number), pr.CreatedAt, reviewWord(pr.State), pr.Title,
			tags[pr.Number], strings.Join(pr.Files, ", ")})
	}
	listing(w, layout{text: []string{"TITLE", "WOULD", "FILES"}, goes: []string{"FILES", "WOULD"}}, rows)
	for _, warning := range r.Warnings {
		w.WriteString("warning: " + warning + "\n")
	}
}

// reviewWord returns the word for what the reviews of a pull request come to; "" for one that is not ours.
func reviewWord(state string) string {
	if state == "none" {
		return wordFor(gitprovider.StateOpen).Text
	}
	return wordFor(gitprovider.ReviewState(state)).Text
}

func prFileCommand(a *commandLine) *cobra.Command {
	var req prflow.ReadFileRequest
	cmd := &cobra.Command{
		Use:   "file OWNER/NAME PATH",
		Short: "Print a file that may be proposed, as the base branch or our own pull request has it",
		Long: "Print a file that may be proposed. Its base_sha, which `pr create --base-sha` takes, and what was taken out " +
			"of the text go to stderr.",
		Example: "  claudeops pr file joe/home-cluster checks/disk.md\n" +
			"  claudeops pr file joe/home-cluster checks/disk.md --pull 7     # as its branch has it",
		Args: usageArgs(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if req.RepoOwner, req.RepoName, err = splitRepo(args[0]); err != nil {
				return err
			}
			req.Path = args[1]
			if req.Pull == 0 && cmd.Flags().Changed("pull") { // which the request leaves out
				_, err = prNumber("0")
				return err
			}
			result, err := askFor[prflow.FileText](cmd.Context(), a, prflow.ActionReadFile, req)
			if err != nil {
				return err
			}
			return printText(a, result, result.Text, append([]string{"base_sha " + result.BaseSHA}, result.Lacks...))
		},
	}
	cmd.Flags().IntVar(&req.Pull, "pull", 0, "number of our open pull request, to read the file as its branch has it")
	cmd.Flags().StringVar(&req.CloneURL, "clone-url", "", "clone URL, to settle the provider")
	return cmd
}

func prFilesCommand(a *commandLine) *cobra.Command {
	var req prflow.ListFilesRequest
	cmd := &cobra.Command{
		Use:   "files OWNER/NAME [GLOB]",
		Short: "List the files that may be proposed, as the base branch has them",
		Long: "List the files that may be proposed, sorted by path: base_sha, which `pr create --base-sha` takes, bytes and " +
			"path. All of them are listed unless --limit or --after is given.",
		Example: "  claudeops pr files joe/home-cluster\n  claudeops pr files joe/home-cluster 'checks/**'",
		Args:    usageArgs(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if req.RepoOwner, req.RepoName, err = splitRepo(args[0]); err != nil {
				return err
			}
			if len(args) > 1 {
				req.Glob = args[1]
			}
			all := req.Limit == 0 && req.After == ""
			if all {
				req.Limit = 1000
			}
			list, err := askFor[prflow.FileList](cmd.Context(), a, prflow.ActionListFiles, req)
			for next := list; err == nil && all && next.Next != ""; {
				req.After = next.Next
				if next, err = askFor[prflow.FileList](cmd.Context(), a, prflow.ActionListFiles, req); err == nil {
					list.Files, list.Next = append(list.Files, next.Files...), next.Next
				}
			}
			if err != nil {
				return err
			}
			return a.print(list, func(w *strings.Builder) {
				fileRows(w, list.Files)
				if list.Next != "" {
					fmt.Fprintf(w, "more after %s\n", list.Next)
				}
				if list.Incomplete {
					fmt.Fprintln(w, "there are more files than the provider tells of")
				}
			})
		},
	}
	cmd.Flags().IntVar(&req.Limit, "limit", 0, "entries of a page (default: all)")
	cmd.Flags().StringVar(&req.After, "after", "", "path after which the page begins")
	cmd.Flags().StringVar(&req.CloneURL, "clone-url", "", "clone URL, to settle the provider")
	return cmd
}

func fileRows(w *strings.Builder, files []prflow.ListedFile) {
	rows := [][]string{{"BASE SHA", "BYTES", "PATH"}}
	for _, f := range files {
		rows = append(rows, []string{f.BaseSHA, strconv.FormatInt(f.Bytes, 10), f.Path})
	}
	listing(w, layout{}, rows)
}

func prDiffCommand(a *commandLine) *cobra.Command {
	cmd := &cobra.Command{
		Use: "diff NUMBER", Short: "Print what our own open pull request changes",
		Long: "Print the unified difference of our own open pull request, against its base branch as it is now. What is " +
			"left out is named on stderr.",
	}
	return aboutPull(a, cmd, func(ctx context.Context, req prflow.ReadDiffRequest) error {
		result, err := askFor[prflow.PullDiff](ctx, a, prflow.ActionReadDiff, req)
		if err != nil {
			return err
		}
		return printText(a, result, result.Diff, result.Notes)
	})
}

// printText prints a text as it is, and notes about it on stderr; with --json the value that has both.
func printText(a *commandLine, v any, text string, notes []string) error {
	if a.json {
		return a.printJSON(v)
	}
	for _, note := range notes {
		if _, err := fmt.Fprintln(a.streams.Err, note); err != nil {
			return err
		}
	}
	_, err := fmt.Fprint(a.streams.Out, text)
	return err
}

func prPromoteCommand(a *commandLine) *cobra.Command {
	var req prflow.PromoteRequest
	cmd := &cobra.Command{
		Use: "promote SEQ|REQUEST-ID", Short: "Open the pull request that a dry run has shown",
		Long: "promote opens what a dry run has shown. Every gate is asked again, and the proposal is a new one. SEQ is the\n" +
			"number of the dry run in `claudeops audit list`.",
		Example: "  claudeops audit list --outcome dry_run\n  claudeops pr promote 17",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			req.ID = args[0]
			if _, err := strconv.ParseInt(req.ID, 10, 64); err == nil { // a row of the audit
				row, err := a.program().Wire(app.Needs{Records: true}).Store.Audit.Entry(cmd.Context(), req.ID)
				if err != nil {
					return err
				}
				req.ID = row.RequestID
			} else if req.ID, err = a.fullID(cmd.Context(), record.IDOfDryRun, req.ID); err != nil {
				return err
			}
			result, err := askFor[prflow.CreateResult](cmd.Context(), a, prflow.OpPromote, req)
			if err != nil {
				return err
			}
			return a.print(result, func(w *strings.Builder) { describeCreated(w, result) })
		},
	}
	addAcknowledge(cmd, &req.Acknowledged)
	return cmd
}
