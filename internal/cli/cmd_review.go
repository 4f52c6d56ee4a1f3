package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/prflow"
)

func (a *app) reviewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "review",
		Short: "Review and merge pull requests of local repositories, as a person",
		Long: "review is for people and for repositories without a forge. No MCP tool leads here: an agent proposes, a person\n" +
			"decides. Forges have pages of their own for this.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.reviewListCommand(), a.reviewShowCommand(),
		a.reviewActCommand(reviewVerb{"approve", "Approve a pull request", "approved", false, approve}),
		a.reviewActCommand(reviewVerb{"request-changes", "Ask for changes; needs --comment", "asked for changes to", false, requestChanges}),
		a.reviewActCommand(reviewVerb{"merge", "Merge a pull request", "merged", true, merge}),
		a.reviewActCommand(reviewVerb{"close", "Close a pull request without merging it", "closed", false, closePR}),
	)
	return cmd
}

// reviewVerb is one thing that a person can do with a pull request.
type reviewVerb struct {
	name, short, done string
	force             bool // has the flag --force
	act               func(context.Context, *local.Reviewer, gitprovider.RepoRef, int, local.MergeNote) (reviewOutcome, error)
}

// reviewOutcome is what a verb did.
type reviewOutcome struct {
	Number   int      `json:"number"`
	Done     string   `json:"done"`
	Commit   string   `json:"commit,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

func approve(ctx context.Context, r *local.Reviewer, ref gitprovider.RepoRef, n int, note local.MergeNote) (reviewOutcome, error) {
	return reviewOutcome{}, r.Approve(ctx, ref, n, note.Note)
}

func requestChanges(ctx context.Context, r *local.Reviewer, ref gitprovider.RepoRef, n int, note local.MergeNote) (reviewOutcome, error) {
	return reviewOutcome{}, r.RequestChanges(ctx, ref, n, note.Note)
}

func closePR(ctx context.Context, r *local.Reviewer, ref gitprovider.RepoRef, n int, note local.MergeNote) (reviewOutcome, error) {
	return reviewOutcome{}, r.Close(ctx, ref, n, note.Note)
}

func merge(ctx context.Context, r *local.Reviewer, ref gitprovider.RepoRef, n int, note local.MergeNote) (reviewOutcome, error) {
	merged, err := r.Merge(ctx, ref, n, note)
	return reviewOutcome{Commit: merged.Commit, Warnings: merged.Warnings}, err
}

func (a *app) reviewActCommand(verb reviewVerb) *cobra.Command {
	var repo string
	var note local.MergeNote
	cmd := &cobra.Command{
		Use: verb.name + " NUMBER", Short: verb.short, Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, number, err := reviewTarget(repo, args[0])
			if err != nil {
				return err
			}
			return a.review(cmd.Context(), verb, ref, number, note)
		},
	}
	cmd.Flags().StringVar(&repo, "repo", "", "repository as owner/name")
	cmd.Flags().StringVar(&note.Body, "comment", "", "what to say")
	cmd.Flags().StringVar(&note.Who, "as", "", "your name (default: the operating system's user)")
	cmd.Flags().StringVar(&note.Head, "head", "", "the head commit that you looked at: refuse if it has moved")
	if verb.force {
		cmd.Flags().BoolVar(&note.Force, "force", false, "merge although changes were requested, or the head moved since it was approved")
	}
	return cmd
}

// review acts and records it: what people do is in the audit, too.
func (a *app) review(ctx context.Context, verb reviewVerb, ref gitprovider.RepoRef, number int, note local.MergeNote) error {
	p := a.wire()
	provider, err := p.needLocal()
	if err != nil {
		return err
	}
	caller := a.caller(p)
	if note.Who == "" {
		note.Who = caller.Name
	}
	caller.Name = note.Who
	attempt := prflow.Attempt{
		Time: time.Now(), RequestID: newID(), Door: caller.Door, Caller: caller.Name, Action: "review." + verb.name,
		Provider: provider.Name(), Owner: ref.Owner, Repo: ref.Name, PRNumber: number, Outcome: prflow.OutcomeDone,
	}
	started := time.Now()
	outcome, actErr := verb.act(ctx, local.NewReviewer(provider), ref, number, note)
	attempt.Duration = time.Since(started)
	if actErr != nil {
		e := fault.From(actErr)
		attempt.Outcome, attempt.Code, attempt.Message = prflow.OutcomeRefused, e.Code, p.scanner.Redact(e.Message)
	}
	recordErr := p.store.Record(context.WithoutCancel(ctx), attempt, nil)
	if actErr != nil {
		return actErr
	}
	outcome.Number, outcome.Done = number, verb.name
	if recordErr != nil {
		outcome.Warnings = append(outcome.Warnings, "not recorded in the audit: "+fault.From(recordErr).Message)
	}
	return a.print(outcome, func(w *strings.Builder) {
		fmt.Fprintf(w, "%s #%d as %s.\n", strings.ToUpper(verb.done[:1])+verb.done[1:], number, shown(note.Who, 100))
		if outcome.Commit != "" {
			fmt.Fprintf(w, "  commit %s\n", outcome.Commit)
		}
		for _, warning := range outcome.Warnings {
			fmt.Fprintf(w, "warning: %s\n", warning)
		}
	})
}

func reviewTarget(repo, arg string) (gitprovider.RepoRef, int, error) {
	number, err := prNumber(arg)
	if err != nil {
		return gitprovider.RepoRef{}, 0, err
	}
	ref, err := reviewRepo(repo)
	return ref, number, err
}

func reviewRepo(repo string) (gitprovider.RepoRef, error) {
	owner, name, err := splitRepo(repo)
	if err != nil {
		return gitprovider.RepoRef{}, err
	}
	ref, problems := gitprovider.NewRepoRef(owner, name, "")
	for argument, problem := range problems {
		return ref, usageError{fmt.Errorf("--repo: %s %w", argument, problem)}
	}
	return ref, nil
}

func (a *app) reviewListCommand() *cobra.Command {
	var repo, state string
	cmd := &cobra.Command{
		Use: "list", Short: "List the pull requests of a local repository", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ref, err := reviewRepo(repo)
			if err != nil {
				return err
			}
			provider, err := a.wire().needLocal()
			if err != nil {
				return err
			}
			wanted := gitprovider.State(state)
			if state == "all" {
				wanted = ""
			}
			prs, err := local.NewReviewer(provider).List(cmd.Context(), ref, wanted)
			if err != nil {
				return err
			}
			entries := make([]reviewEntry, 0, len(prs))
			for _, pr := range prs {
				entries = append(entries, reviewEntryOf(pr))
			}
			return a.print(entries, func(w *strings.Builder) { describeReviewList(w, entries) })
		},
	}
	cmd.Flags().StringVar(&repo, "repo", "", "repository as owner/name")
	cmd.Flags().StringVar(&state, "state", "open", "open, closed, merged or all")
	return cmd
}

// reviewEntry is a pull request in the answers of review.
type reviewEntry struct {
	Number int       `json:"number"`
	State  string    `json:"state"`
	Title  string    `json:"title"`
	URL    string    `json:"url"`
	Branch string    `json:"branch"`
	Base   string    `json:"base"`
	Head   string    `json:"head"`
	Opened time.Time `json:"created_at"`
	Files  []string  `json:"files"`
}

func reviewEntryOf(pr gitprovider.PullRequest) reviewEntry {
	return reviewEntry{
		Number: pr.Number, State: string(pr.State), Title: pr.Title, URL: pr.URL, Branch: pr.Branch, Base: pr.Base,
		Head: pr.HeadCommit, Opened: pr.CreatedAt.UTC(), Files: append([]string{}, pr.Paths...),
	}
}

func describeReviewList(w *strings.Builder, entries []reviewEntry) {
	if len(entries) == 0 {
		w.WriteString("None.\n")
		return
	}
	var rows [][]string
	for _, e := range entries {
		rows = append(rows, []string{"#" + strconv.Itoa(e.Number), e.State, e.Opened.Format(time.RFC3339), shown(e.Title, 72),
			strings.Join(e.Files, ", ")})
	}
	columns(w, rows)
}

func (a *app) reviewShowCommand() *cobra.Command {
	var repo string
	cmd := &cobra.Command{
		Use: "show NUMBER", Short: "Show a pull request with its reviews and its diff", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, number, err := reviewTarget(repo, args[0])
			if err != nil {
				return err
			}
			provider, err := a.wire().needLocal()
			if err != nil {
				return err
			}
			detail, err := local.NewReviewer(provider).Show(cmd.Context(), ref, number)
			if err != nil {
				return err
			}
			return a.printDetail(detail)
		},
	}
	cmd.Flags().StringVar(&repo, "repo", "", "repository as owner/name")
	return cmd
}

func (a *app) printDetail(d local.Detail) error {
	type review struct {
		Author, State, Body string
		SubmittedAt         time.Time
	}
	answer := struct {
		reviewEntry
		Body      string   `json:"body"`
		Mergeable *bool    `json:"mergeable"`
		Reviews   []review `json:"reviews"`
		Diff      string   `json:"diff"`
	}{reviewEntry: reviewEntryOf(d.PullRequest), Body: d.Body, Mergeable: d.Mergeable, Reviews: []review{}, Diff: d.Diff}
	for _, r := range d.Reviews {
		answer.Reviews = append(answer.Reviews, review{r.Author, string(r.State), r.Body, r.SubmittedAt.UTC()})
	}
	return a.print(answer, func(w *strings.Builder) {
		fmt.Fprintf(w, "#%d %s\n  %s into %s, %s, head %s\n\n", d.Number, shown(d.Title, 200), d.Branch, d.Base, d.State, d.HeadCommit)
		lines(w, "  ", d.Body)
		for _, r := range answer.Reviews {
			fmt.Fprintf(w, "\n%s %s %s\n", r.SubmittedAt.Format(time.RFC3339), shown(r.Author, 100), r.State)
			lines(w, "  ", r.Body)
		}
		w.WriteByte('\n')
		if d.DiffTooLarge {
			w.WriteString("[the diff is too large to show; use git]\n")
		}
		lines(w, "", d.Diff)
	})
}

// lines prints text that others wrote, each line made harmless for a terminal: a reviewer must see what is there.
func lines(w *strings.Builder, indent, text string) {
	if text == "" {
		return
	}
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		w.WriteString(indent + visible(line) + "\n")
	}
}

// visible prints a line with its control characters escaped rather than obeyed.
func visible(line string) string {
	var b strings.Builder
	for _, r := range strings.TrimSuffix(line, "\r") {
		if r != '\t' && !strconv.IsPrint(r) {
			fmt.Fprintf(&b, "\\u{%04X}", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
