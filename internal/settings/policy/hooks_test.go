package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestHooksAreReadStrictly(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("ab", 32)
	p, err := policy.Parse("p.yaml", []byte("version: 1\nhooks:\n  alerts: {token_sha256: "+sum+", window: 2h}\n"))
	if err != nil {
		t.Fatal(err)
	}
	h, found := p.Agents.HookNamed("alerts")
	if !found || h.Tier != 1 || h.Window != 2*time.Hour || h.PerHour != policy.DefaultHookPerHour {
		t.Errorf("it is %+v", h)
	}
	if _, found := p.Agents.HookNamed("other"); found {
		t.Error("another hook is found")
	}
	shown := p.View().Hooks
	if len(shown) != 1 || shown[0] != "alerts: sessions of tier 1, at most 4 in an hour, and one for the same alert within 2h" {
		t.Errorf("people read %q", shown)
	}
	hashes := map[string]bool{policy.Default().Hash(): true, p.Hash(): true}
	for _, other := range []string{strings.Repeat("cd", 32) + ", window: 2h", sum + ", window: 3h"} {
		q := must.Get(policy.Parse("p.yaml", []byte("version: 1\nhooks:\n  alerts: {token_sha256: "+other+"}\n")))(t)
		hashes[q.Hash()] = true
	}
	if len(hashes) != 4 {
		t.Error("policies with other hooks have one hash")
	}
	both := must.Get(policy.Parse("p.yaml",
		[]byte("version: 1\nrepositories: [joe/*]\nhooks:\n  fix: {forge: [label, comment]}\n")))(t)
	for _, act := range []policy.ForgeAct{policy.ForgeLabel, policy.ForgeComment} {
		if h, found := both.Agents.HookOf(act); !found || h.Name != "fix" || h.TokenSHA256 != "" {
			t.Errorf("%s starts %+v", act, h)
		}
		if h, found := p.Agents.HookOf(act); found {
			t.Errorf("%s starts %s, which does not say so", act, h.Name)
		}
	}
	if shown := both.View().Hooks; shown[0] != "fix: sessions of tier 1, at most 4 in an hour, and one for the "+
		"same issue within 1h; at a forge, who may write to the repository starts it by the label claude-ops on an issue or "+
		"the comment /claude-ops" {
		t.Errorf("people read %q", shown)
	}
	for text, why := range map[string]string{
		"a: {forge: [push]}":                                                `"push" is not an act`,
		"a: {forge: [label, label]}":                                        "twice",
		"a: {forge: [label]}":                                               "name in repositories",
		"a: {forge: []}":                                                    "token_sha256",
		"a: {forge: [label], token_sha256: x}":                              "token_sha256",
		"alerts: {}":                                                        "token_sha256",
		"alerts: {token_sha256: secret}":                                    "token_sha256",
		"Alerts: {token_sha256: " + sum + "}":                               "a name has",
		"a: {token_sha256: " + sum + ", tier: 4}":                           "1, 2 and 3",
		"a: {token_sha256: " + sum + ", window: 8d}":                        "from 1m to 7d",
		"a: {token_sha256: " + sum + ", per_hour: 0}":                       "1 to 60",
		"a: {token_sha256: " + sum + ", token: secret}":                     "token",
		"a: {forge: [label]}\n  b: {forge: [label]}\nrepositories: [joe/*]": "hooks.b: forge: label starts the hook a",
	} {
		_, err := policy.Parse("p.yaml", []byte("version: 1\nhooks:\n  "+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
