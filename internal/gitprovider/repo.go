package gitprovider

import (
	"crypto/sha1" // #nosec G505: for the length of git's object ids
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// RepoRef names a repository: by owner and name, and, if the caller knows it, by clone URL.
type RepoRef struct {
	Owner string
	Name  string
	// Remote is the parsed clone URL, or nil.
	Remote *Remote
}

// String returns owner/name.
func (r RepoRef) String() string { return r.Owner + "/" + r.Name }

// maxRepoPart is the longest owner or repository name, in bytes; GitHub allows 39 and 100, Gitea 40 and 100.
const maxRepoPart = 100

// CheckRepoPart reports why s cannot be the owner or the name of a repository, or nil. The accepted form holds for
// every provider, and is a plain folder name for the local one.
func CheckRepoPart(s string) error {
	switch {
	case s == "":
		return fmt.Errorf("is empty")
	case len(s) > maxRepoPart:
		return fmt.Errorf("is longer than %d bytes", maxRepoPart)
	case s[0] == '.' || s[0] == '-' || s[len(s)-1] == '.':
		return fmt.Errorf("begins with a dot or a hyphen, or ends with a dot")
	case strings.HasSuffix(strings.ToLower(s), ".git"):
		return fmt.Errorf("ends with .git; give the name without it")
	}
	for _, r := range s {
		if !isPathRune(r) {
			return fmt.Errorf("has the character %s; letters, digits, '.', '_' and '-' are accepted", runeName(r))
		}
	}
	return nil
}

// Remote is a parsed clone URL.
type Remote struct {
	// Host is the lower-case host, with the port when the URL names one. HostLocal for file:// URLs.
	Host string
	// Path is the part after the host, without a leading slash, a trailing slash and a .git ending; for file:// URLs the
	// absolute path with its leading slash.
	Path string
}

// HostLocal stands for the host of file:// URLs.
const HostLocal = "file://"

// ParseRemote understands https, http, ssh and git URLs, the scp form git@host:owner/name, and file:// URLs. A URL that
// carries a password or a token is refused: it would be recorded.
func ParseRemote(s string) (*Remote, error) {
	if !strings.Contains(s, "://") {
		return parseScpForm(s)
	}
	u, err := url.Parse(s)
	if err != nil {
		return nil, fmt.Errorf("is not a URL")
	}
	if _, hasPassword := u.User.Password(); hasPassword {
		return nil, fmt.Errorf("carries a password; give it without")
	}
	if u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return nil, fmt.Errorf("has a query or a fragment; give the plain clone URL")
	}
	switch u.Scheme {
	case "file":
		if u.Host != "" && u.Host != "localhost" {
			return nil, fmt.Errorf("names a host in a file:// URL")
		}
		return &Remote{Host: HostLocal, Path: trimRepoPath(u.Path)}, nil
	case "https", "http", "git":
		if u.User != nil {
			return nil, fmt.Errorf("carries a user name, which may be a token; give it without")
		}
	case "ssh":
	default:
		return nil, fmt.Errorf("has the scheme %s; https, ssh and file are understood", printable(u.Scheme))
	}
	if u.Host == "" {
		return nil, fmt.Errorf("names no host")
	}
	return &Remote{Host: strings.ToLower(u.Host), Path: strings.TrimPrefix(trimRepoPath(u.Path), "/")}, nil
}

func parseScpForm(s string) (*Remote, error) {
	userHost, repoPath, ok := strings.Cut(s, ":")
	_, host, hasUser := strings.Cut(userHost, "@")
	if !hasUser {
		host = userHost
	}
	if !ok || host == "" || repoPath == "" || strings.ContainsAny(host, "/\\ ") || strings.HasPrefix(s, "-") ||
		strings.HasPrefix(repoPath, ":") {
		return nil, fmt.Errorf("is not a clone URL; give one such as https://git.example.org/owner/name.git")
	}
	return &Remote{Host: strings.ToLower(host), Path: strings.TrimPrefix(trimRepoPath(repoPath), "/")}, nil
}

func trimRepoPath(p string) string {
	return strings.TrimSuffix(strings.TrimSuffix(p, "/"), ".git")
}

// Names reports whether the remote's path ends in owner/name, letter case aside: a clone URL that names another
// repository than the request's must not decide where a change goes.
func (r *Remote) Names(owner, name string) bool {
	want := strings.ToLower(owner + "/" + name)
	have := strings.ToLower(r.Path)
	return have == want || strings.HasSuffix(have, "/"+want)
}

// NewRepoRef checks and parses a repository given by a caller. The errors map the argument's name to what is wrong
// with it; nil when all is well.
func NewRepoRef(owner, name, cloneURL string) (RepoRef, map[string]error) {
	problems := map[string]error{}
	ref := RepoRef{Owner: owner, Name: name}
	if err := CheckRepoPart(owner); err != nil {
		problems["repo_owner"] = err
	}
	if err := CheckRepoPart(name); err != nil {
		problems["repo_name"] = err
	}
	if cloneURL != "" {
		remote, err := ParseRemote(cloneURL)
		switch {
		case err != nil:
			problems["clone_url"] = err
		case len(problems) == 0 && !remote.Names(owner, name):
			problems["clone_url"] = fmt.Errorf("names another repository than repo_owner and repo_name")
		default:
			ref.Remote = remote
		}
	}
	if len(problems) == 0 {
		return ref, nil
	}
	return ref, problems
}

// BranchPrefix begins the name of every branch that Claude Ops makes.
const BranchPrefix = "claude-ops/"

// MaxSlug is the largest length of the last part of a branch name, in bytes.
const MaxSlug = 50

// ErrEmptySlug is returned for a title without a single letter or digit.
var ErrEmptySlug = errors.New("the title has no letter or digit to name a branch after")

// Slug turns a title into the last part of a branch name: lower case, accents taken off, runs of anything but a-z and
// 0-9 become one hyphen, at most MaxSlug bytes in whole words, no hyphen at the ends. A title in letters of another
// script is named by a digest.
func Slug(title string) (string, error) {
	var b strings.Builder
	pending, letters := false, false
	for _, r := range norm.NFD.String(umlauts().Replace(strings.ToLower(title))) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			if pending && b.Len() > 0 {
				b.WriteByte('-')
			}
			pending = false
			b.WriteRune(r)
			continue
		}
		letters = letters || unicode.IsLetter(r) || unicode.IsDigit(r)
		pending = pending || !unicode.Is(unicode.Mn, r)
	}
	slug := cutSlug(b.String(), MaxSlug)
	switch {
	case slug != "":
		return slug, nil
	case !letters:
		return "", ErrEmptySlug
	}
	sum := sha256.Sum256([]byte(title))
	return "title-" + hex.EncodeToString(sum[:6]), nil
}

// umlauts writes letters with the two that people write for them; all others lose their accents alone.
func umlauts() *strings.Replacer {
	return strings.NewReplacer("ä", "ae", "ö", "oe", "ü", "ue", "ß", "ss", "æ", "ae", "ø", "oe", "å", "aa", "œ", "oe",
		"ł", "l", "đ", "d", "þ", "th", "ð", "d")
}

// cutSlug cuts at the end of a word, unless that would leave less than half.
func cutSlug(slug string, limit int) string {
	if len(slug) <= limit {
		return strings.Trim(slug, "-")
	}
	if at := strings.LastIndexByte(slug[:limit+1], '-'); at >= limit/2 {
		return strings.Trim(slug[:at], "-")
	}
	return strings.Trim(slug[:limit], "-")
}

// BranchName returns the branch for a change: claude-ops/{change type}/{slug}. Where that looks like an object id (see
// LooksLikeID), the slug is shorter by a character, or by two if one of them is a hyphen.
func BranchName(t ChangeType, title string) (string, error) {
	slug, err := Slug(title)
	if err != nil {
		return "", err
	}
	return plainlyNamed(BranchPrefix+string(t)+"/"+slug, ""), nil
}

// branchRefs begins the full name of a branch.
const branchRefs = "refs/heads/"

// LooksLikeID reports whether a name of a branch, short or in full (refs/heads/...), has as many characters as an
// object id: 40 with SHA-1, 64 with SHA-256. Some servers take every name of that length for an id.
func LooksLikeID(branch string) bool {
	for _, n := range []int{len(branch), len(branchRefs) + len(branch)} {
		if n == 2*sha1.Size || n == 2*sha256.Size {
			return true
		}
	}
	return false
}

// plainlyNamed returns the branch's name with the ending. As much is left out before the ending as it takes that the
// name does not look like an id.
func plainlyNamed(branch, ending string) string {
	for LooksLikeID(branch + ending) {
		cut := len(branch) - 1
		if word := strings.LastIndexByte(branch, '-'); word > strings.LastIndexByte(branch, '/') {
			cut = word // no half of a word at its end
		}
		branch = strings.TrimRight(branch[:cut], "-")
	}
	return branch + ending
}

// BranchWithSuffix returns the branch name to take when the plain one is taken by something else: the slug is shortened
// so that it fits MaxSlug together with a hyphen and the suffix. The suffix has at most 16 bytes.
func BranchWithSuffix(branch, suffix string) string {
	at := strings.LastIndexByte(branch, '/') + 1
	return plainlyNamed(branch[:at]+cutSlug(branch[at:], MaxSlug-1-len(suffix)), "-"+suffix)
}

// maxBranchBytes keeps a reference's file name below what file systems store, with room for git's lock suffix.
const maxBranchBytes = 200

// CheckBranchName reports why s cannot name a branch, or nil. The rules are those of git-check-ref-format(1), narrowed:
// no control or non-ASCII characters, no leading hyphen.
func CheckBranchName(s string) error {
	switch {
	case s == "":
		return errors.New("is empty")
	case len(s) > maxBranchBytes:
		return fmt.Errorf("is longer than %d bytes", maxBranchBytes)
	case s[0] == '-' || s[0] == '/' || s[len(s)-1] == '/' || s[len(s)-1] == '.':
		return errors.New("begins with a hyphen or a slash, or ends with a slash or a dot")
	case strings.Contains(s, "..") || strings.Contains(s, "//") || strings.Contains(s, "@{") || s == "@" || s == "HEAD":
		return errors.New("holds \"..\", \"//\" or \"@{\", or is a name that git reserves")
	case strings.HasPrefix(s, "refs/"):
		return errors.New("begins with refs/; give the branch's short name")
	}
	for _, r := range s {
		if r <= ' ' || r >= 0x7f || strings.ContainsRune(`~^:?*[\`, r) {
			return fmt.Errorf("has the character %s, which branch names cannot hold", runeName(r))
		}
	}
	for _, segment := range strings.Split(s, "/") {
		if segment[0] == '.' || strings.HasSuffix(segment, ".lock") {
			return errors.New("has a part that begins with a dot or ends with .lock")
		}
	}
	return nil
}

// CheckOurs refuses, with invalid_argument, every branch that Claude Ops may not write: one outside BranchPrefix, or
// that no branch can be named.
func CheckOurs(branch string) error {
	if !strings.HasPrefix(branch, BranchPrefix) || CheckBranchName(branch) != nil {
		return fault.New(fault.InvalidArgument, "the branch %.200q is not one of ours; those begin with %s", branch,
			BranchPrefix)
	}
	return nil
}

// BranchAbove refuses to make a branch of ours where one stands at the name of the folder of ours: no title helps then.
// nil for every other branch that is in the way.
func BranchAbove(repo RepoRef, branch string, cause error) error {
	if folder := strings.TrimSuffix(BranchPrefix, "/"); branch != folder && branch != "refs/heads/"+folder {
		return nil
	}
	return fault.Wrap(cause, fault.RepoNotAllowed, "no branch %s... can be made in %s while there is a branch %s; have a "+
		"person rename or remove that one", BranchPrefix, repo, branch)
}
