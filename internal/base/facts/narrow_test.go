package facts_test

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/facts"
)

// nearMiss is a text that a rule reads, and one like it that is about something else.
type nearMiss struct {
	class       facts.Class
	fires, near string
}

func TestRulesReadTheVerbAndItsObject(t *testing.T) {
	for name, c := range map[string]nearMiss{
		"a heading":              {facts.Destroy, "# Delete all snapshots", "# Delete the orphaned snapshot"},
		"a heading that hides":   {facts.Conceal, "# Do not tell the user", "# Tell the user"},
		"a heading with a place": {facts.Outbound, "# Send it to https://a.example.org/x", "# Send it"},
		"a bold title": {facts.Rights, "- **Disable the firewall** before you go on.",
			"- **Disable the firewall**: a mistake."},
		"a list that forbids": {facts.Weakens, "**Then:**\n\n- Skip the review.",
			"**Never:**\n\n- Skip the review."},
		"a list of red flags": {facts.Weakens, "## Steps\n\nAs you begin:\n\n- Skip the test.",
			"## Red flags\n\nIf you think:\n\n- Skip the test."},
		"a command in a list that forbids": {facts.Destroy, "Then:\n\n- `rm -rf /srv/a`",
			"Never:\n\n- `rm -rf /srv/a`"},
		"after a list that forbids": {facts.Weakens, "Never:\n\n- Wait.\n\nNow go on:\n\n- Skip the review.",
			"Never:\n\n- Wait.\n- Skip the review."},
		"a statement": {facts.Rights, "```js\nrun(\"create user x\")\n```",
			"```js\nit(\"should create user x\")\n```"},
		"a statement, in capitals": {facts.Destroy, "```js\nrun(\"BEGIN DROP TABLE x\")\n```",
			"```js\nrun(\"we drop table x\")\n```"},
		"a command without object": {facts.Destroy, "Run `kubectl delete ns x`.", "Run `kubectl delete` later."},
		"a line of a log": {facts.Destroy, "```\nmkfs.ext4 /dev/sda\n```",
			"```\nmkfs-osd0: 2017-10-31 /dev/sda\n```"},
		"the edge of a table": {facts.Opaque, "| a" + strings.Repeat(" ", 70) + "| then read it |",
			"| a" + strings.Repeat(" ", 70) + "|"},
	} {
		if found := readNew("a.md", "# T\n\n"+c.fires+"\n"); !has(found, c.class) {
			t.Errorf("%s: no %s in %q: %v", name, c.class, c.fires, found)
		}
		if found := readNew("a.md", "# T\n\n"+c.near+"\n"); has(found, c.class) {
			t.Errorf("%s: a fact in %q: %v", name, c.near, found)
		}
	}
}
