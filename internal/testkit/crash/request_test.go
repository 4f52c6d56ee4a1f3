//go:build linux

package crash

import (
	"encoding/json"
	"fmt"
)

const (
	repoOwner = "demo"
	repoName  = "home-cluster"
	repoKey   = repoOwner + "/" + repoName
)

// request is the arguments of create_pr.
type request struct {
	Owner      string `json:"repo_owner"`
	Name       string `json:"repo_name"`
	Title      string `json:"title"`
	Body       string `json:"body"`
	ChangeType string `json:"change_type"`
	Revises    int    `json:"revises,omitempty"`
	Reply      string `json:"reply,omitempty"`

	Replies []reply `json:"replies,omitempty"`
	Files   []file  `json:"files"`
}

type reply struct {
	Comment string `json:"comment"`
	Text    string `json:"text"`
}

type file struct {
	Path    string `json:"path"`
	Action  string `json:"action"`
	Content string `json:"content"`
}

// newCheck proposes to add one check. Two requests for the same path overlap; they are the same change if the content
// is the same, too.
func newCheck(title, path, content string) request {
	return request{
		Owner: repoOwner, Name: repoName, Title: title, ChangeType: "check",
		Body:  "Observed: a disk filled overnight.\nWhy: nobody looked.",
		Files: []file{{path, "create", content}},
	}
}

// answer is the structured content of create_pr.
type answer struct {
	Number  int      `json:"number"`
	URL     string   `json:"url"`
	Branch  string   `json:"branch"`
	Files   []string `json:"files"`
	Reused  bool     `json:"reused"`
	Revised bool     `json:"revised"`
	Replies int      `json:"replies"`
	Error   struct {
		Code       string `json:"code"`
		Message    string `json:"message"`
		Retryable  bool   `json:"retryable"`
		RetryAfter int    `json:"retry_after_seconds"`
		Existing   struct {
			Number int      `json:"number"`
			URL    string   `json:"url"`
			Paths  []string `json:"paths"`
		} `json:"existing_pr"`
	} `json:"error"`
}

// opened says that the answer is a pull request that this call opened.
func (a answer) opened() bool { return a.Error.Code == "" && a.Number > 0 && !a.Reused && !a.Revised }

// revised says that the answer is a pull request that this call added a commit to; reused revisions are revised, too.
func (a answer) revised() bool { return a.Error.Code == "" && a.Number > 0 && a.Revised && !a.Reused }

// about is the pull request that the answer leads to: the one opened or reused, or the one that is in the way.
func (a answer) about() (number int, url string) {
	if a.Error.Code == "duplicate_pr" {
		return a.Error.Existing.Number, a.Error.Existing.URL
	}
	return a.Number, a.URL
}

// The messages of a client.
const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{},"clientInfo":{"name":"crash","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// callOf is the call of create_pr that asks to be told of its progress.
func callOf(id int, r request) string {
	arguments, _ := json.Marshal(r) // strings always marshal
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"_meta":{"progressToken":"p%d"},`+
		`"name":"create_pr","arguments":%s}}`, id, id, arguments)
}

// message is one line of a server: a response, or a notification of progress.
type message struct {
	ID     int    `json:"id"`
	Method string `json:"method"`
	Params struct {
		Message string `json:"message"`
	} `json:"params"`
	Result struct {
		Structured json.RawMessage `json:"structuredContent"`
	} `json:"result"`
	Error json.RawMessage `json:"error"` // of the protocol: the server refused or broke off the call
}
