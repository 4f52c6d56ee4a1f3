package github

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// statusReader reads one pull request with its reviews and checks.
type statusReader struct {
	pulls pulls
	sleep func(context.Context, time.Duration)
}

const (
	reviewNodes  = `pageInfo { hasNextPage endCursor } nodes { id author { __typename login } state body submittedAt }`
	contextNodes = `pageInfo { hasNextPage endCursor }
      nodes { __typename ... on CheckRun { name status conclusion startedAt title summary text detailsUrl
          checkSuite { id app { slug } workflowRun { event workflow { name } } } }
        ... on StatusContext { context state description targetUrl } }`
)

// reviewFields selects a page of the reviews. after is the argument that names its cursor.
func reviewFields(after string) string {
	return "reviews(first: 100" + after + ") { " + reviewNodes + " } "
}

// rollupFields selects a page of the checks on the head commit.
func rollupFields(after string) string {
	return "commits(last: 1) { nodes { commit { oid statusCheckRollup { state contexts(first: 100" + after + ") { " +
		contextNodes +
		" } } } } }"
}

// statusNode is a pull request with what Status wants to know besides.
type statusNode struct {
	pullNode
	Mergeable string
	MergedBy  *userNode
	threadsNode
	Reviews  *connection[reviewNode]
	Comments connection[remarkNode]
	Commits  *struct {
		Nodes []struct {
			Commit struct {
				Oid               string
				StatusCheckRollup *rollup
			}
		}
	}
}

type reviewNode struct {
	ID          string
	Author      *userNode
	State, Body string
	SubmittedAt *time.Time
}

// rollup is GitHub's sum of everything that CI reported on a commit.
type rollup struct {
	State    string
	Contexts *connection[contextNode]
}

// contextNode is a check run or a commit status.
type contextNode struct {
	Name, Status, Conclusion, Title, Summary, Text, DetailsURL string // of a check run
	StartedAt                                                  *time.Time
	CheckSuite                                                 suiteNode
	Context, State, Description, TargetURL                     string // of a commit status
}

// suiteNode describes the suite of a check run. WorkflowRun is nil for apps other than GitHub Actions, and where the
// token may not see it.
type suiteNode struct {
	ID          string
	App         *struct{ Slug string }
	WorkflowRun *struct {
		Event    string
		Workflow struct{ Name string }
	}
}

// rollup returns CI's report; it has no contexts if CI reported nothing.
func (n *statusNode) rollup() rollup {
	if n.Commits == nil || len(n.Commits.Nodes) == 0 || n.Commits.Nodes[0].Commit.StatusCheckRollup == nil {
		return rollup{}
	}
	return *n.Commits.Nodes[0].Commit.StatusCheckRollup
}

// reportsOn reports whether rollup is about a commit: a pull request that shows an old head has the checks of that.
func (n *statusNode) reportsOn(commit string) bool {
	return n.Commits != nil && len(n.Commits.Nodes) > 0 && n.Commits.Nodes[0].Commit.Oid == commit
}

// queryPull reads fields of one pull request. Checks that the token may not see count as not reported: fine-grained
// tokens cannot be given the permission for all of them.
func (s statusReader) queryPull(ctx context.Context, repo gitprovider.RepoRef, number int, q *query,
	fields string) (*statusNode,
	error) {
	var n statusNode
	err := s.pulls.one(ctx, repo, number, q, fields, "statusCheckRollup", &n)
	return &n, err
}

func (s statusReader) readStatus(ctx context.Context, repo gitprovider.RepoRef, number int) (gitprovider.Status,
	error) {
	none := gitprovider.Status{}
	q := newQuery(repo)
	q.fragment(pullFragment + changedFragment)
	n, err := s.queryPull(ctx, repo, number, q, "...pull ...changed mergeable mergedBy { login } "+commentFields+
		threadFields()+
		reviewFields("")+
		rollupFields(""))
	if err != nil {
		return none, err
	}
	prs, err := s.pulls.files.convert(ctx, repo, []*pullNode{&n.pullNode})
	if err != nil {
		return none, err
	}
	out := gitprovider.Status{PullRequest: prs[0]}
	if n.MergedBy != nil {
		out.MergedBy = n.MergedBy.Login
	}
	reviews, err := s.reviews(ctx, repo, n)
	if err != nil {
		return none, err
	}
	var comments []gitprovider.Remark
	for _, c := range n.Comments.Nodes {
		if !c.remarkTime().IsZero() {
			comments = append(comments, c.remark())
		}
	}
	out.Reviews = gitprovider.AndConversation(reviews, comments)
	if out.Checks, err = s.checks(ctx, repo, n, out.HeadCommit); err != nil {
		return none, err
	}
	if out.State == gitprovider.StateOpen {
		out.Mergeable, err = s.mergeable(ctx, repo, n)
	}
	return out, err
}

// settlingStep is the first pause before GitHub is asked again whether a pull request can be merged; see forge.Settled.
// It begins to find out when it is asked for the first time.
const settlingStep = 400 * time.Millisecond

func (s statusReader) mergeable(ctx context.Context, repo gitprovider.RepoRef, n *statusNode) (*bool, error) {
	unknown := func(answer string) bool { return answer == "UNKNOWN" }
	answer, err := forge.Settled(ctx, n.Mergeable, unknown, settlingStep, s.sleep, func() (string, error) {
		again, err := s.queryPull(ctx, repo, n.Number, newQuery(repo), "mergeable")
		return again.Mergeable, err
	})
	yes := answer == "MERGEABLE"
	if err != nil || !yes && answer != "CONFLICTING" {
		return nil, err
	}
	return &yes, nil
}

// reviews reads all pages, which GitHub gives oldest first.
func (s statusReader) reviews(ctx context.Context, repo gitprovider.RepoRef, n *statusNode) ([]gitprovider.Review,
	error) {
	all, err := collectPages(n.Reviews, func(last *connection[reviewNode]) (*connection[reviewNode], error) {
		q := newQuery(repo)
		next, err := s.queryPull(ctx, repo, n.Number, q, reviewFields(q.cursorArgument(last.PageInfo.EndCursor)))
		return next.Reviews, err
	})
	var out []gitprovider.Review
	lines := n.byReview()
	for _, r := range all {
		review := gitprovider.Review{ // the author as GitHub calls the deleted
			Author: "ghost", State: reviewState(r.State), Body: r.Body, Comments: lines[r.ID],
		}
		if r.Author != nil {
			review.Author, review.Program = r.Author.Login, r.Author.isBot()
		}
		if r.SubmittedAt != nil {
			review.SubmittedAt = r.SubmittedAt.UTC()
		}
		out = append(out, review)
	}
	return out, err
}

func reviewState(s string) gitprovider.ReviewState {
	switch s {
	case "APPROVED":
		return gitprovider.ReviewApproved
	case "CHANGES_REQUESTED":
		return gitprovider.ReviewChangesRequested
	case "DISMISSED":
		return gitprovider.ReviewDismissed
	case "PENDING":
		return gitprovider.ReviewPending
	}
	return gitprovider.ReviewCommented
}

// checks reads all pages of what CI reported on the head; nothing if the node shows another commit's.
func (s statusReader) checks(ctx context.Context, repo gitprovider.RepoRef, n *statusNode,
	head string) (gitprovider.Checks, error) {
	if !n.reportsOn(head) {
		return gitprovider.Checks{State: gitprovider.ChecksNone}, nil
	}
	sum := n.rollup()
	all, err := collectPages(sum.Contexts, func(last *connection[contextNode]) (*connection[contextNode], error) {
		q := newQuery(repo)
		next, err := s.queryPull(ctx, repo, n.Number, q, rollupFields(q.cursorArgument(last.PageInfo.EndCursor)))
		return next.rollup().Contexts, err
	})
	current := withoutSuperseded(all)
	var failing []gitprovider.FailedCheck
	running := false
	for _, c := range current {
		if check, failed := c.failing(); failed {
			failing = append(failing, check)
		}
		running = running || c.running()
	}
	state := checksState(sum.State)
	if state == gitprovider.ChecksFailure && len(current) < len(all) { // GitHub counts what was superseded
		state = gitprovider.ChecksSuccess
		if running {
			state = gitprovider.ChecksPending
		}
	}
	return forge.Checks(state, failing), err
}

// withoutSuperseded leaves out the check runs that were started again: a new label or an edited body triggers workflows
// once more, and GitHub keeps the old run beside the new one. Of the runs of one name, app, workflow and event those of
// the suite that started last remain.
func withoutSuperseded(all []*contextNode) []*contextNode {
	newest := map[string]*contextNode{}
	for _, c := range all {
		if known := newest[c.checkKey()]; known == nil || !c.started().Before(known.started()) {
			newest[c.checkKey()] = c
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(c *contextNode) bool {
		return c.Name != "" && newest[c.checkKey()].CheckSuite.ID != c.CheckSuite.ID
	})
}

// checkKey identifies the runs of one check. Where the workflow is not shown, only runs of one suite share a key: two
// workflows may have jobs of the same name.
func (n *contextNode) checkKey() string {
	suite, app := n.CheckSuite, ""
	if suite.App != nil {
		app = suite.App.Slug
	}
	switch run := suite.WorkflowRun; {
	case run != nil:
		return strings.Join([]string{n.Name, app, run.Workflow.Name, run.Event}, "\x00")
	case app == actionsApp || app == "":
		return strings.Join([]string{n.Name, app, suite.ID}, "\x00")
	}
	return n.Name + "\x00" + app
}

// actionsApp is the app that runs GitHub Actions.
const actionsApp = "github-actions"

// started returns the start of a run; one that has not begun counts as newer than all that have.
func (n *contextNode) started() time.Time {
	if n.StartedAt == nil {
		return time.Unix(1<<40, 0)
	}
	return *n.StartedAt
}

// running reports whether the context has no result yet.
func (n *contextNode) running() bool {
	return n.Name != "" && n.Status != "COMPLETED" || n.State == "PENDING" || n.State == "EXPECTED"
}

// failing gives the context if it failed. Neutral and skipped runs did not.
func (n *contextNode) failing() (gitprovider.FailedCheck, bool) {
	switch n.Conclusion {
	case "FAILURE", "TIMED_OUT", "CANCELLED", "ACTION_REQUIRED", "STARTUP_FAILURE", "STALE":
		summary := strings.TrimSpace(n.Title + "\n" + n.Summary)
		return gitprovider.FailedCheck{Name: n.Name, Summary: summary, Log: n.Text, URL: n.DetailsURL}, true
	}
	check := gitprovider.FailedCheck{Name: n.Context, Summary: n.Description, URL: n.TargetURL}
	return check, n.State == "FAILURE" || n.State == "ERROR"
}

// checksOf reads what CI reported on a commit, if that is the head of a pull request.
func (s statusReader) checksOf(ctx context.Context, repo gitprovider.RepoRef, number int,
	head string) (gitprovider.Checks,
	error) {
	n, err := s.queryPull(ctx, repo, number, newQuery(repo), "number "+rollupFields(""))
	if err != nil {
		return gitprovider.Checks{State: gitprovider.ChecksNone}, err
	}
	return s.checks(ctx, repo, n, head)
}

func checksState(s string) gitprovider.ChecksState {
	switch s {
	case "":
		return gitprovider.ChecksNone
	case "SUCCESS":
		return gitprovider.ChecksSuccess
	case "FAILURE", "ERROR":
		return gitprovider.ChecksFailure
	}
	return gitprovider.ChecksPending // PENDING and EXPECTED
}
