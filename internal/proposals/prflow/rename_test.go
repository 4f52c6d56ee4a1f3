package prflow_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// renamed is the repository under another owner and name, and the revision of #1 there.
func (b *bench) renamed() []byte {
	b.fake.People.Rename(infra, "ops", "cluster")
	return revising(func(r map[string]any) { r["repo_owner"], r["repo_name"] = "ops", "cluster" })
}

func TestARenamedOrTransferredRepositoryKeepsItsRevisions(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]func(b *bench){"with its records": func(*bench) {},
		"without records": func(b *bench) { b.loseState() }} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.reviewed()
			again := b.renamed()
			forget(b)
			result, err := b.create(again)
			if err != nil || !result.Revised || result.Number != 1 {
				t.Fatalf("%+v, %v", result, err)
			}
		})
	}
}

// remarked signs the mark of a body again after a change.
func (b *bench) remarked(body string, change func(m map[string]any)) string {
	b.Helper()
	key, err := b.options.Proof.Key()
	if err != nil {
		b.Fatal(err)
	}
	return regexp.MustCompile(`(<!-- claude-ops:v1 )(\S+) \S+`).ReplaceAllStringFunc(body, func(found string) string {
		payload, err := base64.RawURLEncoding.DecodeString(strings.Fields(found)[2])
		var m map[string]any
		if err != nil || json.Unmarshal(payload, &m) != nil {
			b.Fatalf("no mark: %q", found)
		}
		change(m)
		payload, _ = json.Marshal(m)
		encoded := base64.RawURLEncoding.EncodeToString(payload)
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte("claude-ops mark v1\n" + encoded))
		return "<!-- claude-ops:v1 " + encoded + " " + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	})
}

func TestAMarkIsBoundToTheRepositorysIDAndAnOldOneToItsName(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(m map[string]any)
		renamed bool
		refused bool
	}{
		"an old mark": {change: func(m map[string]any) { delete(m, "repo_id") }},
		"an old mark after a renaming": {change: func(m map[string]any) { delete(m, "repo_id") },
			renamed: true, refused: true},
		"a mark of another repository that had this name": {change: func(m map[string]any) { m["repo_id"] = "77" },
			refused: true},
		"a mark that has the id and a name of a time past": {change: func(m map[string]any) { m["repo"] = "joe/before" }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.reviewed()
			b.world().SetBody(1, b.remarked(b.body(1), c.change))
			asked := revising(nil)
			if c.renamed {
				asked = b.renamed()
			}
			result, err := b.create(asked)
			if c.refused && (fault.CodeOf(err) != fault.Conflict ||
				!strings.Contains(err.Error(), "lacks the mark of Claude Ops")) ||
				!c.refused && (err != nil || !result.Revised) {
				t.Errorf("%+v, %v", result, err)
			}
		})
	}
}

// With another key than that of the state folder that was lost, nothing of ours can be told; the refusal names the way
// back.
func TestWithAnotherKeyTheRefusalNamesTheVariable(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.reviewed()
	b.loseState()
	b.options.Proof.Key = func() ([]byte, error) { return []byte("another key for tests, of 32 byte"), nil }
	e, _ := b.mustRefuse(revising(nil), fault.Conflict)
	if len(e.Violations) == 0 || !strings.Contains(e.Violations[0].Message, "CLAUDEOPS_MARK_KEY") {
		t.Errorf("%+v", e)
	}
	if got := b.status().Revise; !strings.HasPrefix(got, "no: ") || !strings.Contains(got, "CLAUDEOPS_MARK_KEY") {
		t.Errorf("status says %q", got)
	}
}
