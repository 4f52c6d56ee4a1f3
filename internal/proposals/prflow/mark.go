package prflow

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// mark is the signed statement of origin in a pull request's body. It is bound to one place: copied into another pull
// request it is not accepted.
type mark struct {
	Provider string `json:"provider"`
	Repo     string `json:"repo"` // owner/name when it was signed, lower case
	// RepoID is the provider's permanent id of the repository; see gitprovider.PullRequest. Marks of older versions lack
	// it.
	RepoID  string `json:"repo_id,omitempty"`
	Branch  string `json:"branch"`
	Digest  string `json:"digest"`
	Request string `json:"request"`
	// Contents are the fingerprints of the files' texts, markDigits of each, one after the other.
	Contents string `json:"contents,omitempty"`
	// Revision counts the commits that were added after it was opened; RevisedBy is the request that made the last.
	Revision  int    `json:"revision,omitempty"`
	RevisedBy string `json:"revised_by,omitempty"`
	// Heard says which remarks had been read when the last revision was made; see heardOf.
	Heard string `json:"heard,omitempty"`
	// Withdrawn says that we closed the pull request ourselves, so that it does not count as rejected.
	Withdrawn bool `json:"withdrawn,omitempty"`
	// Stale is since when nobody had acted on the pull request, in microseconds since 1970, if we have closed it for that.
	Stale int64 `json:"stale,omitempty"`
	// Audit is the head of the audit before the proposal was recorded; see markHead. Marks of older programs have none.
	Audit string `json:"audit,omitempty"`
}

// markDigits is the number of hex digits of each fingerprint in a mark: a body has little room, and the fingerprints of
// a hundred files must fit.
const markDigits = 10

// fingerprints joins those of the changes for a mark.
func fingerprints(changes []gitprovider.Change) string {
	var b strings.Builder
	for _, c := range changes {
		if f := fingerprint(c); f != "" {
			b.WriteString(f[:markDigits])
		}
	}
	return b.String()
}

func fingerprint(c gitprovider.Change) string {
	return gitprovider.FileChange{Action: c.Action, Content: c.Content}.Fingerprint()
}

// holdsText reports whether the mark has the fingerprint of a text.
func (m mark) holdsText(fingerprint string) bool {
	for at := 0; fingerprint != "" && at+markDigits <= len(m.Contents); at += markDigits {
		if m.Contents[at:at+markDigits] == fingerprint[:markDigits] {
			return true
		}
	}
	return false
}

// markForm matches gitprovider.MarkOpening, a version, payload and signature.
func markForm() *regexp.Regexp {
	return regexp.MustCompile(regexp.QuoteMeta(gitprovider.MarkOpening) + `v1 ([A-Za-z0-9_-]+) ([A-Za-z0-9_-]{43}) -->`)
}

// sign returns the mark with its signature, as an HTML comment: invisible in the rendered body.
func (m mark) sign(key []byte) (string, error) {
	payload, err := json.Marshal(m)
	if err != nil {
		return "", err
	}
	encoded := base64.RawURLEncoding.EncodeToString(payload)
	return fmt.Sprintf("%sv1 %s %s -->", gitprovider.MarkOpening, encoded, signature(key, encoded)), nil
}

// signature returns the HMAC-SHA256 in unpadded base64url. The prefix keeps it from being valid for any other purpose.
func signature(key []byte, encoded string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("claude-ops mark v1\n" + encoded))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// markReader reads the marks of one repository's pull requests.
type markReader struct {
	form     *regexp.Regexp
	key      []byte
	provider string
	repo     string
}

func newMarkReader(key []byte, provider string, repo gitprovider.RepoRef) markReader {
	return markReader{markForm(), key, provider, strings.ToLower(repo.String())}
}

// firstSigned returns the first true mark of a pull request that belongs to it.
func (r markReader) firstSigned(pr gitprovider.PullRequest) (mark, bool) {
	for _, found := range r.findMarks(pr) {
		if found.signed {
			return found.mark, true
		}
	}
	return mark{}, false
}

// withdrawn reports whether a mark of a pull request says that we have closed it ourselves. It may be signed with
// another key: that of another state folder. Only those can write one who may edit the pull request, and an agent
// cannot (see outgoing).
func (r markReader) withdrawn(pr gitprovider.PullRequest) bool {
	return slices.ContainsFunc(r.findMarks(pr), func(found foundMark) bool { return found.Withdrawn })
}

// isIn reports whether the mark is bound to a repository: by its id, which stays when it is renamed or transferred, or,
// where one of the two is not known, by its name.
func (m mark) isIn(name, id string) bool {
	if m.RepoID != "" && id != "" {
		return m.RepoID == id
	}
	return m.Repo == name
}

// foundMark is a mark that names the pull request it stands in.
type foundMark struct {
	mark
	signed bool // with our key
}

func (r markReader) findMarks(pr gitprovider.PullRequest) (out []foundMark) {
	if !strings.Contains(pr.Body, gitprovider.MarkOpening) {
		return nil
	}
	for _, found := range r.form.FindAllStringSubmatch(pr.Body, 10) {
		payload, err := base64.RawURLEncoding.DecodeString(found[1])
		var m mark
		if err != nil || json.Unmarshal(payload, &m) != nil {
			continue
		}
		if m.Provider == r.provider && m.isIn(r.repo, pr.RepoID) && m.Branch == pr.Branch {
			out = append(out, foundMark{m, hmac.Equal([]byte(found[2]), []byte(signature(r.key, found[1])))})
		}
	}
	return out
}

// whyNot explains why a pull request has no valid mark.
func (r markReader) whyNot(pr gitprovider.PullRequest) string {
	if len(r.findMarks(pr)) > 0 {
		return "has a mark that another key has signed: that of another installation, or of a state folder that is lost; " +
			"the operator can give " +
			"this server that key in CLAUDEOPS_MARK_KEY (it is mark.key in that state folder)"
	}
	return "lacks the mark of Claude Ops"
}

// withdrawnBody returns a body with the reason at its beginning, and with a mark that says the same.
func withdrawnBody(r markReader, pr gitprovider.PullRequest, reason string) (string, error) {
	m, _ := r.firstSigned(pr)
	m.Provider, m.Repo, m.RepoID, m.Branch, m.Withdrawn = r.provider, r.repo, pr.RepoID, pr.Branch, true
	signed, err := m.sign(r.key)
	rest := strings.TrimRight(r.form.ReplaceAllString(pr.Body, ""), " \t\r\n")
	return reason + "\n\n" + rest + "\n\n" + signed + "\n", err
}

// RedirectNote returns the note in a pull request's footer about where later proposals go; "" if there is none.
func RedirectNote(body string) string {
	footer := body[len(AgentText(body)):]
	at := strings.LastIndex(footer, "\n"+redirectOpening)
	if at < 0 {
		return ""
	}
	text, _, _ := strings.Cut(footer[at+1:], "\n")
	return text
}

// IsRedirect reports whether a warning of a gate says that a change moves where later proposals go.
func IsRedirect(warning string) bool { return strings.HasPrefix(warning, redirectOpening) }

// AgentText returns the body of a proposal as the agent wrote it, without the footer that we add.
func AgentText(body string) string {
	if at := strings.LastIndex(body, footerOpening); at >= 0 {
		return body[:at]
	}
	return body
}

// markHead returns a head of the audit as a mark has it: the number of the row, a colon, and its hash in unpadded
// base64url. "" for one of an empty audit.
func markHead(seq int64, hash string) string {
	b, err := hex.DecodeString(hash)
	if err != nil || seq < 1 {
		return ""
	}
	return strconv.FormatInt(seq, 10) + ":" + base64.RawURLEncoding.EncodeToString(b)
}

// head returns the head of the audit that a mark has; ok is false for a mark without one.
func (m mark) head() (h record.Head, ok bool) {
	number, encoded, _ := strings.Cut(m.Audit, ":")
	seq, err := strconv.ParseInt(number, 10, 64)
	if err != nil || seq < 1 {
		return record.Head{}, false
	}
	hash, err := base64.RawURLEncoding.DecodeString(encoded)
	return record.Head{Seq: seq, Hash: hex.EncodeToString(hash)}, err == nil
}

// readHead reads the head that the mark of the draft is to have.
func (p Proof) readHead(ctx context.Context, d *draft) error {
	if p.Head == nil {
		return nil
	}
	seq, hash, err := p.Head(ctx)
	d.head = markHead(seq, hash)
	return err
}

// MarkedHeads are the heads of the audit in the marks of a repository's pull requests.
type MarkedHeads struct {
	Heads  []record.Head
	Marks  int // that are ours
	Others int // pull requests that look like ours and have no mark that our key has signed
}

// HeadsAt reads the marks of the pull requests of a repository at a provider that are open, and of those that were
// closed without a merge since a time: one snapshot. Marks that our key did not sign do not count.
func (r Reader) HeadsAt(ctx context.Context, provider, owner, name string, since time.Time) (out MarkedHeads,
	err error) {
	resolution, err := r.resolveNamed(provider, owner, name)
	if err != nil {
		return out, r.readFailure(err)
	}
	marks, err := r.marks(resolution.Provider.Name(), resolution.Repo)
	if err != nil {
		return out, r.readFailure(err)
	}
	snapshot, err := resolution.Provider.Snapshot(ctx, gitprovider.SnapshotQuery{Repo: resolution.Repo,
		ClosedSince: since})
	if err != nil {
		return out, r.readFailure(err)
	}
	for _, pulls := range [][]gitprovider.PullRequest{snapshot.Open, snapshot.Closed} {
		for _, pr := range pulls {
			m, ours := marks.firstSigned(pr)
			if !ours {
				out.Others++
				continue
			}
			out.Marks++
			if h, ok := m.head(); ok {
				out.Heads = append(out.Heads, h)
			}
		}
	}
	return out, nil
}

// HeadOf reads the mark of one pull request; ok is false if it has no head, or is not ours.
func (r Reader) HeadOf(ctx context.Context, provider, owner, name string, number int) (h record.Head, ok bool,
	err error) {
	resolution, err := r.resolveNamed(provider, owner, name)
	if err != nil {
		return h, false, r.readFailure(err)
	}
	marks, err := r.marks(resolution.Provider.Name(), resolution.Repo)
	if err != nil {
		return h, false, r.readFailure(err)
	}
	status, err := resolution.Provider.Status(ctx, resolution.Repo, number)
	if err != nil {
		return h, false, r.readFailure(err)
	}
	m, ours := marks.firstSigned(status.PullRequest)
	if !ours {
		return h, false, nil
	}
	h, ok = m.head()
	return h, ok, nil
}

// commitMark is the signed statement of origin in the messages of our commits. The line carries only what the commit
// itself does not say: its place and its parent are bound by the signature.
type commitMark struct {
	Provider string
	Repo     string // owner/name, lower case
	Branch   string
	Parent   string // commit
	Content  string // contentDigest of the change
	Request  string
}

// commitMarkForm returns a trailer of a commit message: a version, content digest, request and signature.
func commitMarkForm() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^Claude-Ops-Change: v1 ([0-9a-f]{64}) (\S{1,100}) ([A-Za-z0-9_-]{43})\r?$`)
}

// sign returns the trailer.
func (m commitMark) sign(key []byte) (string, error) {
	signed, err := m.signature(key)
	return fmt.Sprintf("Claude-Ops-Change: v1 %s %s %s", m.Content, m.Request, signed), err
}

func (m commitMark) signature(key []byte) (string, error) {
	payload, err := json.Marshal(m)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("claude-ops commit v1\n"))
	mac.Write(payload)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), nil
}

// readCommitMark returns the digest of the change and the request that a commit's message names. Whether the signature
// is true is not asked: the mark may be of a time before the key was lost, or of another installation.
func readCommitMark(commit gitprovider.CommitInfo) (content, request string, found bool) {
	parts := commitMarkForm().FindStringSubmatch(commit.Message)
	if parts == nil || len(commit.Parents) != 1 {
		return "", "", false
	}
	return parts[1], parts[2], true
}
