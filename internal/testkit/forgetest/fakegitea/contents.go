package fakegitea

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// maxBlob is the largest file, in bytes, whose content the server sends.
const maxBlob = 10 << 20

func encode(content string) string { return base64.StdEncoding.EncodeToString([]byte(content)) }

type linksJSON struct {
	Self string  `json:"self"`
	Git  *string `json:"git"`
	HTML *string `json:"html"`
}

type contentJSON struct {
	Name              string    `json:"name"`
	Path              string    `json:"path"`
	SHA               string    `json:"sha"`
	LastCommitSHA     string    `json:"last_commit_sha"`
	LastCommitterDate string    `json:"last_committer_date"`
	LastAuthorDate    string    `json:"last_author_date"`
	Type              string    `json:"type"`
	Size              int       `json:"size"`
	Encoding          *string   `json:"encoding"`
	Content           *string   `json:"content"`
	Target            *string   `json:"target"`
	URL               string    `json:"url"`
	HTMLURL           *string   `json:"html_url"`
	GitURL            *string   `json:"git_url"`
	DownloadURL       *string   `json:"download_url"`
	SubmoduleGitURL   *string   `json:"submodule_git_url"`
	Links             linksJSON `json:"_links"`
}

// view is a commit by the name under which it was asked for.
type view struct {
	ref, commit string
	place       string // of its pages: branch/main, tag/v1, commit/<id>
}

// view finds what a ref is; "" is the default branch.
func (r *repository) view(ref string) (view, error) {
	if ref == "" {
		ref = r.repo.Default
	}
	out := view{ref: ref, commit: resolve(r.repo, r.st, ref)}
	switch {
	case out.commit == "":
		return out, notFound(noObject(ref, ""))
	case r.repo.Branches[ref] != "":
		out.place = "branch/" + escapePath(ref)
	case r.st.Tags[ref] != "":
		out.place = "tag/" + escapePath(ref)
	default:
		out.place = "commit/" + out.commit
	}
	return out, nil
}

// escapePath escapes what is between the slashes.
func escapePath(path string) string {
	segments := strings.Split(path, "/")
	for i := range segments {
		segments[i] = url.PathEscape(segments[i])
	}
	return strings.Join(segments, "/")
}

// entry renders what is at a path. Contents of files are sent when asked for and not too large.
func (j *rendering) entry(v view, n *node, withContent bool) *contentJSON {
	last := j.at.st.objects.lastChange(j.at.repo, v.commit, n.path)
	made, escaped := j.s.stampOf(last), escapePath(n.path)
	self := j.at.api() + "/contents/" + escaped + "?ref=" + url.QueryEscape(v.ref)
	git, html := j.at.api()+"/git/blobs/"+n.id, j.at.web()+"/src/"+v.place+"/"+escaped
	raw := j.at.web() + "/raw/" + v.place + "/" + escaped
	out := &contentJSON{
		Name: n.name(), Path: n.path, SHA: n.id, LastCommitSHA: last, LastCommitterDate: stampTime(made.committer.when),
		LastAuthorDate: stampTime(made.author.when), Type: "file", Size: n.size(), URL: self, HTMLURL: &html,
		GitURL: &git, DownloadURL: &raw, Links: linksJSON{Self: self, Git: &git, HTML: &html},
	}
	switch n.kind {
	case gitprovider.KindDir:
		out.Type, out.DownloadURL = "dir", nil
	case gitprovider.KindSymlink:
		out.Type, out.Target = "symlink", &n.content
	case gitprovider.KindSubmodule:
		out.Type, out.Size, out.HTMLURL, out.GitURL, out.DownloadURL = "submodule", 0, nil, nil, nil
		out.Links.Git, out.Links.HTML = nil, nil
		out.SubmoduleGitURL = j.submodule(v.commit, n.path)
	default:
		if encoding, content := "base64", encode(n.content); withContent && n.size() <= maxBlob {
			out.Encoding, out.Content = &encoding, &content
		}
	}
	return out
}

// submodule looks up the address of a submodule in .gitmodules, where url follows path.
func (j *rendering) submodule(commit, path string) *string {
	_, after, found := strings.Cut(j.at.repo.Tree(commit)[".gitmodules"].Content, "path = "+path+"\n")
	if !found {
		return nil
	}
	address, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(after), "url = "), "\n")
	return &address
}

// getContents shows a file with its content, or lists a folder without contents. It follows no link.
func getContents(c *call) (*answer, error) {
	v, err := c.at.view(c.query.Get("ref"))
	if err != nil {
		return nil, err
	}
	asked := strings.Trim(c.params["filepath"], "/")
	root := c.at.st.objects.root(c.at.repo, v.commit)
	n := root.find(asked)
	switch {
	case n == nil:
		return nil, &refusal{status: http.StatusNotFound, message: "GetContentsOrList", detailed: true,
			details: []string{missingObject(root, asked)}}
	case n.kind != gitprovider.KindDir:
		return ok(c.json.entry(v, n, true)), nil
	}
	list := []*contentJSON{}
	for _, child := range n.children {
		list = append(list, c.json.entry(v, child, false))
	}
	return ok(list), nil
}

// missingObject names the file that was used as a folder, or else the path.
func missingObject(root *node, path string) string {
	for i := range len(path) {
		if path[i] != '/' {
			continue
		}
		if above := root.find(path[:i]); above != nil && above.kind != gitprovider.KindDir {
			return noObject(above.id, "")
		}
	}
	return noObject("", path)
}

type filesBody struct {
	Files *[]string `json:"files"`
}

func getFilesByQuery(c *call) (*answer, error) {
	if c.at.st.Features.NoFileContents {
		return nil, noSuchRoute()
	}
	var in filesBody
	if err := json.Unmarshal([]byte(c.query.Get("body")), &in); err != nil {
		return nil, refuse(http.StatusBadRequest, "invalid body parameter")
	}
	return answerFiles(c, in)
}

func getFilesByBody(c *call) (*answer, error) {
	if c.at.st.Features.NoFileContents {
		return nil, noSuchRoute()
	}
	var in filesBody
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.Files == nil {
		return nil, unprocessable("[Files]: Required")
	}
	return answerFiles(c, in)
}

// answerFiles answers with one entry a path, null for missing ones, and silently drops those beyond one page.
func answerFiles(c *call, in filesBody) (*answer, error) {
	v, err := c.at.view(c.query.Get("ref"))
	if err != nil {
		return nil, err
	}
	var paths []string
	if in.Files != nil {
		paths = *in.Files
	}
	list := []*contentJSON{}
	root, left := c.at.st.objects.root(c.at.repo, v.commit), 10*maxBlob
	for _, asked := range paths[:min(len(paths), defaultLimit)] {
		if asked == "" {
			return nil, panicked()
		}
		n := root.find(strings.TrimPrefix(path.Clean(asked), "/"))
		if n == nil || strings.HasSuffix(asked, "/") {
			list = append(list, nil)
			continue
		}
		left -= n.size()
		list = append(list, c.json.entry(v, n, left >= 0))
	}
	return ok(list), nil
}
