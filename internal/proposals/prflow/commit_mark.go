package prflow

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

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
