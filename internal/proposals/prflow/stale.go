package prflow

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// StaleCloser closes pull requests of ours on which nobody acts any more. It is safe for concurrent use.
type StaleCloser struct{ service *Service }

// NewStaleCloser makes a StaleCloser.
func (s *Service) NewStaleCloser() StaleCloser { return StaleCloser{s} }

// After is how long nobody may act on a pull request until it is closed, by the policy of the moment; 0 if it is not,
// or if this process may not write. The tier is that of agents and does not matter: it is the operator who closes.
func (c StaleCloser) After() time.Duration {
	now := c.service.CurrentAuthority()
	if now.ReadOnly != "" || now.DryRun || now.Unknown != "" {
		return 0
	}
	return now.Policy.CloseAfter
}

// Stale is one pull request to close.
type Stale struct {
	Pull  record.PullRecord
	After time.Duration // how long nobody has acted
	// Claim notes that this process is about to close it; false if another one is.
	Claim func(ctx context.Context) (bool, error)
	// Judge says whether it is still to be closed, by what its provider shows.
	Judge func(gitprovider.Status) bool
}

// Close posts a comment that says why, and closes the pull request, unless somebody has acted on it meanwhile, it is
// not ours, or another process does it. The comment is posted once, however often this is repeated after a failure.
// Nothing is recorded: the next look at the pull request does that. paused and read_only: nothing was written.
func (c StaleCloser) Close(ctx context.Context, stale Stale) error {
	s, r := c.service, stale.Pull
	if c.After() == 0 {
		return fault.New(fault.ReadOnly, "#%d stays open: nothing may be written", r.Number)
	}
	at, err := s.Reader().resolveNamed(r.Provider, r.Owner, r.Repo)
	if err != nil {
		return err
	}
	release, err := rules{pauses: s.Pauses}.claimWrite(ctx, at.Repo)
	if err != nil {
		return err
	}
	defer release()
	reader, err := s.settler().marksOf(r.Provider, at.Repo)
	if err != nil {
		return err
	}
	closing := staleClosing{stale, at, reader}
	if pr, err := closing.loadPull(ctx); err != nil || pr == nil {
		return err
	}
	if mine, err := stale.Claim(ctx); err != nil || !mine {
		return err
	}
	if err := closing.comment(ctx); err != nil {
		return err
	}
	s.reachStep("stale commented")
	pr, err := closing.loadPull(ctx) // somebody may have acted while the comment was posted
	if err != nil || pr == nil {
		return err
	}
	body, err := staleBody(reader, *pr, r.WaitsSince())
	if err != nil {
		return err
	}
	_, err = at.Provider.Close(ctx, at.Repo, gitprovider.Closing{Number: pr.Number, Branch: pr.Branch,
		Head: pr.HeadCommit, Body: body})
	s.reachStep("stale closed")
	if fault.CodeOf(err) == fault.Conflict { // somebody has pushed or merged
		return nil
	}
	return err
}

// staleClosing closes one pull request.
type staleClosing struct {
	Stale
	at    gitprovider.Resolution
	marks markReader
}

// loadPull reads the pull request; nil if it is not ours, not where it was, or not to be closed any more.
func (c staleClosing) loadPull(ctx context.Context) (*gitprovider.PullRequest, error) {
	status, err := c.at.Provider.Status(ctx, c.at.Repo, c.Pull.Number)
	if err != nil {
		return nil, err
	}
	_, ours := c.marks.firstSigned(status.PullRequest)
	if !ours || status.Fork || status.Archived || status.State != gitprovider.StateOpen ||
		status.HeadCommit != c.Pull.Head || !c.Judge(status) {
		return nil, nil
	}
	return &status.PullRequest, nil
}

// comment posts the comment, unless it is there, or somebody has acted meanwhile.
func (c staleClosing) comment(ctx context.Context) error {
	reviser, can := c.at.Provider.(gitprovider.Reviser)
	reader, reads := c.at.Provider.(gitprovider.RemarkReader)
	if !can || !reads {
		return fault.New(fault.ProviderDisabled, "the provider %s cannot comment", c.at.Provider.Name())
	}
	signed, err := c.signed()
	if err != nil {
		return err
	}
	remarks, err := reader.Remarks(ctx, c.at.Repo, c.Pull.Number)
	if err != nil {
		return err
	}
	posted := func(r gitprovider.Remark) bool { return strings.Contains(r.Body, signed) }
	if slices.ContainsFunc(remarks, posted) {
		return nil
	}
	if pr, err := c.loadPull(ctx); err != nil || pr == nil {
		return err
	}
	return reviser.Comment(ctx, c.at.Repo, c.Pull.Number, c.closeComment()+"\n\n"+signed+"\n")
}

// closeComment says why the pull request is closed, and how to get it back.
func (c staleClosing) closeComment() string {
	return fmt.Sprintf("%snobody has acted on this pull request since %s, and the policy closes it after %s "+
		"(`stale.close_after`). Nobody has rejected it, and its files are free again.\n\n"+
		"To get it back, reopen it: its branch is still there. Or let the agent propose the change again; it need not "+
		"wait. If it is open all the same, somebody acted at this moment, and it stays open.",
		gitprovider.CloseOpening, c.Pull.WaitsSince().UTC().Format("2 January 2006, 15:04 UTC"), ageWords(c.After))
}

// ageWords returns an age in full days, or else in hours.
func ageWords(age time.Duration) string {
	const day = 24 * time.Hour
	if age%day == 0 {
		return fault.Count(int(age/day), "day", "days")
	}
	return fault.Count(int(age/time.Hour), "hour", "hours")
}

// signed returns the hidden mark of the comment. It names the pull request and since when nobody has acted, so that
// each time of waiting has one comment, whichever process posts it.
func (c staleClosing) signed() (string, error) {
	payload, err := json.Marshal([]any{c.marks.provider, c.marks.repo, c.Pull.Number, c.Pull.WaitsSince().UnixMicro()})
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, c.marks.key)
	mac.Write([]byte("claude-ops stale v1\n"))
	mac.Write(payload)
	return "<!-- claude-ops-stale: " + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)) + " -->", nil
}

// staleBody returns the body of a pull request with a mark that says that we closed it, and since when nobody had
// acted. People see no difference.
func staleBody(r markReader, pr gitprovider.PullRequest, since time.Time) (string, error) {
	m, _ := r.firstSigned(pr)
	m.Stale = since.UnixMicro()
	signed, err := m.sign(r.key)
	rest := strings.TrimRight(r.form.ReplaceAllString(pr.Body, ""), " \t\r\n")
	return rest + "\n\n" + signed + "\n", err
}

// Marked reports whether the body of a pull request says that Close has closed it in the time of waiting of its record.
// One that is open has been reopened by a person.
func (c StaleCloser) Marked(was record.PullRecord, pr gitprovider.PullRequest) (bool, error) {
	if !gitprovider.HasMark(pr) {
		return false, nil
	}
	reader, err := c.service.settler().marksOf(was.Provider, gitprovider.RepoRef{Owner: was.Owner, Name: was.Repo})
	if err != nil {
		return false, err
	}
	m, ours := reader.firstSigned(pr)
	return ours && m.closedStale(was), nil
}

// closedStale reports whether the mark says that we closed the pull request in the present time of waiting.
func (m mark) closedStale(r record.PullRecord) bool {
	return m.Stale != 0 && m.Stale == r.WaitsSince().UnixMicro()
}

// revivesBy says how the change of a closed pull request gets on, for its agent; "" if somebody else closed it, and if
// that cannot be seen.
func (s *Service) revivesBy(ctx context.Context, at gitprovider.Resolution, pr gitprovider.PullRequest) string {
	r, found, err := s.History.FindPull(ctx, record.PullKey{Provider: at.Provider.Name(), Owner: at.Repo.Owner,
		Repo: at.Repo.Name, Number: pr.Number})
	if err != nil {
		s.log().warn("not seen how a pull request ended", err, "pr", pr.Number)
	}
	if err != nil || !found || !r.ExpiredAs(pr.ClosedAt) {
		return ""
	}
	return "no: Claude Ops closed it, as nobody had acted on it; propose the change again if it is still needed; " +
		"no cooldown holds it up"
}
