package fakegithub

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// free are members whose value is the server's to choose: ids, faces, times, counts, addresses of documentation. That
// they are there, and of which type, is compared all the same.
func free(member string) bool {
	return slices.Contains([]string{
		"id", "node_id", "avatar_url", "gravatar_id", "documentation_url", "size", "login", "type", "temp_clone_token",
		"subscribers_count", "open_issues_count", "open_issues", "stargazers_count", "watchers_count", "watchers",
		"target_url",
		"description", "site_admin", "network_count", "language", "topics",
	}, member) || strings.HasSuffix(member, "_at")
}

// since are members that GitHub has added after the recordings were made, in 2022.
func since() []string {
	return []string{"status", "user_view_type", "has_discussions", "expired"}
}

// absent are members that the recordings have and the fake leaves out: settings of organisations and of merging, which
// no client of ours reads.
func absent() []string {
	return []string{
		"organization", "allow_squash_merge", "allow_merge_commit", "allow_rebase_merge", "allow_auto_merge",
		"allow_update_branch", "delete_branch_on_merge", "use_squash_pr_title_as_default", "squash_merge_commit_message",
		"squash_merge_commit_title", "merge_commit_message", "merge_commit_title", "temp_clone_token",
	}
}

func (r *replay) complain(format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
}

// compare holds an answer against the recorded one.
func (r *replay) compare(want, got heard) {
	if want.Status != got.Status {
		r.complain("status %d, recorded was %d: %v", got.Status, want.Status, got.Body)
	}
	for _, name := range []string{"Content-Type", "Link", "Location", "X-GitHub-Media-Type", "Cache-Control"} {
		r.text("header "+name, want.Headers[name], got.Headers[http.CanonicalHeaderKey(name)])
	}
	r.value("body", want.Body, got.Body)
}

func (r *replay) value(path string, want, got any) {
	switch want := want.(type) {
	case map[string]any:
		have, is := got.(map[string]any)
		if !is {
			r.complain("%s: %v is no object", path, got)
			return
		}
		r.object(path, want, have)
	case []any:
		have, is := got.([]any)
		if !is || len(have) != len(want) {
			r.complain("%s: %v, recorded was a list of %d", path, got, len(want))
			return
		}
		for i := range want {
			r.value(fmt.Sprintf("%s[%d]", path, i), want[i], have[i])
		}
	case string:
		have, is := got.(string)
		if !is {
			r.complain("%s: %v, recorded was %q", path, got, want)
			return
		}
		r.text(path, want, have)
	default:
		if want != got {
			r.complain("%s: %v, recorded was %v", path, got, want)
		}
	}
}

func (r *replay) object(path string, want, have map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		member, there := have[name]
		switch {
		case !there && slices.Contains(absent(), name):
		case !there:
			r.complain("%s: %s is missing", path, name)
		case free(name):
			if theirs := fmt.Sprintf("%T", want[name]); theirs != fmt.Sprintf("%T", member) {
				r.complain("%s.%s: %v, recorded was %v", path, name, member, want[name])
			}
		default:
			r.value(path+"."+name, want[name], member)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if _, there := want[name]; !there && !slices.Contains(since(), name) {
			r.complain("%s: %s was not recorded", path, name)
		}
	}
}

// text compares strings in which names, ids and addresses may differ.
func (r *replay) text(path, want, got string) {
	want = r.toOurs(want)
	got = strings.ReplaceAll(got, r.s.URL(), "https://api.github.com")
	got = strings.ReplaceAll(got, "github.example", "github.com")
	if want != got {
		r.complain("%s: %q, recorded was %q", path, got, want)
	}
}
