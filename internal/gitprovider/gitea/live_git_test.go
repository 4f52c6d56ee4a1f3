//go:build live

package gitea_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
)

// git runs git in the clone. The token travels in the environment, where no list of processes shows it.
func (w *liveWorld) git(stdin string, args ...string) string {
	w.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", w.dir}, args...)...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(pair string) bool { return strings.HasPrefix(pair, "GIT") }),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=http.extraHeader", "GIT_CONFIG_VALUE_0=Authorization: token "+w.live.token)
	cmd.Stdin = strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("git %v: %v\n%s", args, err, &stderr)
	}
	return string(out)
}

func (w *liveWorld) remote() string {
	return strings.TrimSuffix(w.live.base.String(), "/") + "/" + w.Ref().String() + ".git"
}

func (w *liveWorld) fetch() {
	w.t.Helper()
	w.git("", "fetch", "--quiet", "--prune", w.remote(), "+refs/*:refs/there/*")
}

// pushGit pushes by git, over whatever the branch has, and waits until the server's list of branches shows it.
func (w *liveWorld) pushGit(branch, from string, files []providertest.File) string {
	w.t.Helper()
	var s strings.Builder
	fmt.Fprintf(&s, "commit refs/new\nmark :1\ncommitter Person <person@example.org> %d +0000\ndata 6\npushed\n",
		time.Now().Unix())
	if from != "" {
		w.fetch()
		fmt.Fprintf(&s, "from %s\n", from)
	}
	for _, f := range files {
		mode := "100644"
		switch {
		case f.Kind == gitprovider.KindSubmodule:
			fmt.Fprintf(&s, "M 160000 %s %s\n", strings.Repeat("ab", 20), f.Path)
			continue
		case f.Kind == gitprovider.KindSymlink:
			mode = "120000"
		case f.Executable:
			mode = "100755"
		}
		fmt.Fprintf(&s, "M %s inline %s\ndata %d\n%s\n", mode, f.Path, len(f.Content), f.Content)
	}
	s.WriteString("get-mark :1\n")
	commit := strings.TrimSpace(w.git(s.String(), "fast-import", "--quiet", "--force"))
	w.git("", "push", "--quiet", "--force", w.remote(), commit+":refs/heads/"+branch)
	w.poll(20*time.Second, func() bool {
		var branches []struct {
			Name   string `json:"name"`
			Commit struct {
				ID string `json:"id"`
			} `json:"commit"`
		}
		w.api("", http.MethodGet, "branches", nil, &branches)
		for _, b := range branches {
			if b.Name == branch && b.Commit.ID == commit {
				return true
			}
		}
		return false
	})
	return commit
}

func (w *liveWorld) Branches() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(w.git("", "ls-remote", "--heads", w.remote())) {
		id, ref, _ := strings.Cut(strings.TrimSpace(line), "\t")
		out[strings.TrimPrefix(ref, "refs/heads/")] = id
	}
	return out
}

func (w *liveWorld) Files(commit string) []providertest.File {
	w.t.Helper()
	w.fetch()
	var out []providertest.File
	for entry := range strings.SplitSeq(w.git("", "ls-tree", "-r", "-z", commit), "\x00") {
		info, path, ok := strings.Cut(entry, "\t")
		fields := strings.Fields(info)
		if !ok || len(fields) != 3 {
			continue
		}
		f := providertest.File{Path: path, Kind: gitprovider.KindFile, Executable: fields[0] == "100755"}
		switch fields[0] {
		case "120000":
			f.Kind = gitprovider.KindSymlink
		case "160000":
			f.Kind = gitprovider.KindSubmodule
		}
		if f.Kind != gitprovider.KindSubmodule {
			f.Content = w.git("", "cat-file", "blob", fields[2])
		}
		out = append(out, f)
	}
	return out
}

func (w *liveWorld) Parents(commit string) []string {
	w.t.Helper()
	w.fetch()
	return strings.Fields(w.git("", "rev-list", "--parents", "-1", commit))[1:]
}

func (w *liveWorld) Message(commit string) string {
	w.t.Helper()
	w.fetch()
	return w.git("", "log", "-1", "--format=%B", commit)
}
