package prflow

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// commitMark is what the message of our commits says about their origin, signed. The line carries only what the commit
// itself does not say: its place and its parent are bound by the signature.
type commitMark struct {
	Provider string
	Repo     string // owner/name, lower case
	Branch   string
	Parent   string // commit
	Content  string // contentDigest of the change
	Request  string
}

// commitMarkForm is a trailer of a commit message: a version, content digest, request and signature.
func commitMarkForm() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^Claude-Ops-Change: v1 ([0-9a-f]{64}) (\S{1,100}) ([A-Za-z0-9_-]{43})\r?$`)
}

// sign is the trailer.
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

// readCommitMark returns the mark in a commit's message. found is false if there is none; signed says whether it was made
// with the key, for this commit's parent, at this place. One without a true signature may be ours of a time before the key
// was lost, or be another installation's.
func readCommitMark(key []byte, provider string, repo gitprovider.RepoRef, branch string, commit gitprovider.CommitInfo) (
	m commitMark, found, signed bool) {
	parts := commitMarkForm().FindStringSubmatch(commit.Message)
	if parts == nil || len(commit.Parents) != 1 {
		return m, false, false
	}
	m = commitMark{
		Provider: provider, Repo: strings.ToLower(repo.String()), Branch: branch, Parent: commit.Parents[0],
		Content: parts[1], Request: parts[2],
	}
	want, err := m.signature(key)
	return m, true, err == nil && hmac.Equal([]byte(want), []byte(parts[3]))
}
