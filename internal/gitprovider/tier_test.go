package gitprovider_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

func TestParseTierFallsToOneForEverythingElse(t *testing.T) {
	cases := map[string]struct {
		tier gitprovider.Tier
		ok   bool
	}{
		"1": {1, true}, "2": {2, true}, "3": {3, true}, " 2\n": {2, true},
		"": {1, true}, "0": {1, false}, "4": {1, false}, "-1": {1, false}, "2.0": {1, false}, "02": {1, false},
		"two": {1, false},
		"+3":  {1, false}, "3 3": {1, false}, "${CLAUDEOPS_TIER}": {1, false}, "３": {1, false},
		"99999999999999999999": {1, false},
	}
	for raw, want := range cases {
		tier, ok := gitprovider.ParseTier(raw)
		if tier != want.tier || ok != want.ok {
			t.Errorf("ParseTier(%q) = %d, %t; want %d, %t", raw, tier, ok, want.tier, want.ok)
		}
	}
}

func TestValidateTier(t *testing.T) {
	cases := []struct {
		tier   gitprovider.Tier
		files  int
		denied bool
		says   string
	}{
		{1, 1, true, "tier 2 and tier 3 may"},
		{0, 1, true, "may not propose"}, {4, 1, true, "may not propose"}, {-2, 1, true, "may not propose"},
		{2, 1, false, ""}, {2, 3, false, ""}, {2, 4, true, "tier 3 may change up to 100"}, {2, 101, true, "no tier"},
		{3, 100, false, ""}, {3, 101, true, "no tier"},
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("tier %d with %d files", c.tier, c.files), func(t *testing.T) {
			v := gitprovider.ValidateTier(gitprovider.DefaultTierLimits(), c.tier, c.files)
			if (len(v) > 0) != c.denied {
				t.Fatalf("violations %v, want denied=%t", v, c.denied)
			}
			if c.denied && (v[0].Code != fault.TierDenied || !strings.Contains(v[0].Message, c.says)) {
				t.Errorf("%+v does not say %q", v[0], c.says)
			}
		})
	}
}

func TestLimitsCanOnlyBeTightened(t *testing.T) {
	loose := gitprovider.TierLimits{Investigate: 50, Remediate: 5000}
	if got := loose.MaxFiles(2); got != gitprovider.MaxFilesTier2 {
		t.Errorf("tier 2 may change %d files", got)
	}
	if got := loose.MaxFiles(3); got != gitprovider.MaxFilesPerPR {
		t.Errorf("tier 3 may change %d files", got)
	}
	if got := (gitprovider.TierLimits{}).MaxFiles(3); got != 0 {
		t.Errorf("a policy that forbids tier 3 lets it change %d files", got)
	}
}

func TestNewChangeSetIsTheOnlyWayAndRunsBothValidators(t *testing.T) {
	rules := gitprovider.Rules{Tier: 2, Limits: gitprovider.DefaultTierLimits(), Scope: gitprovider.DefaultScope()}
	set, violations := gitprovider.NewChangeSet(rules, changes("playbooks/b.md", "checks/a.md"))
	if len(violations) != 0 || set.Len() != 2 || set.Paths()[0].String() != "checks/a.md" {
		t.Fatalf("a good request gave %v, %v", set, violations)
	}
	set.Changes()[0].Content = "tampered"
	if set.Changes()[0].Content != "x\n" {
		t.Error("a change set can be altered from outside")
	}
	set, violations = gitprovider.NewChangeSet(rules, changes("a.go", "checks/1.md", "checks/2.md", "checks/3.md"))
	if set.Len() != 0 || len(violations) != 2 {
		t.Errorf("a request that breaks tier and scope gave %d changes and %v", set.Len(), violations)
	}
	if set, violations = gitprovider.NewChangeSet(rules, nil); set.Len() != 0 || len(violations) == 0 {
		t.Error("an empty request made a change set")
	}
}
