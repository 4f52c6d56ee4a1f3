package doctor

import (
	"errors"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/system/confine"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
)

func TestDoctorSaysWhichBoundaryHoldsAndWhyNoBetterOne(t *testing.T) {
	tests := []struct {
		name     string
		boundary confine.Boundary
		err      error
		required bool
		broken   string
		status   string
		says     []string
	}{
		{name: "a user", boundary: confine.Boundary{Kind: confine.User, Account: "agents", ABI: 7}, required: true,
			status: OK, says: []string{"user agents, with landlock (ABI 7)"}},
		{name: "landlock", boundary: confine.Boundary{Kind: confine.Landlock, ABI: 7, Why: "no user"}, required: true,
			status: OK, says: []string{"landlock (ABI 7); no user"}},
		{name: "a limited network", boundary: confine.Boundary{Kind: confine.Landlock, ABI: 7,
			Net: "TCP to ports 53, 443; UDP to anywhere"}, required: true, status: OK,
			says: []string{"network: TCP to ports 53, 443; UDP to anywhere"}},
		{name: "users that cannot be claimed where a boundary is required",
			boundary: confine.Boundary{Kind: confine.User, Account: "agents",
				Missing: []string{"two claudeops could give agents the same user"}}, required: true, status: Problem,
			says: []string{"the same user", "stops agents' sessions"}},
		{name: "none", boundary: confine.Boundary{Kind: confine.None, Why: "an old kernel"}, status: Warning,
			says: []string{"none; an old kernel", "can do what the user of claudeops can"}},
		{name: "none where one is required", boundary: confine.Boundary{Kind: confine.None}, required: true, status: Problem,
			says: []string{"stops agents' sessions", "sessions.require_boundary"}},
		{name: "none where the policy cannot be read", boundary: confine.Boundary{Kind: confine.None}, broken: "line 3",
			status: Problem, says: []string{"stops agents' sessions"}},
		{name: "an old landlock", boundary: confine.Boundary{Kind: confine.Landlock, ABI: 3, Missing: []string{"signals"}},
			status: Warning, says: []string{"lacking: signals"}},
		{name: "an old landlock where one is required",
			boundary: confine.Boundary{Kind: confine.Landlock, ABI: 3, Missing: []string{"signals"}}, required: true,
			status: Problem, says: []string{"stops agents' sessions"}},
		{name: "a setting that is no good", err: errors.New("CLAUDEOPS_AGENT_USER is x"), status: Problem,
			says: []string{"CLAUDEOPS_AGENT_USER is x stops agents' sessions"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := newDoctor(&forge{Fake: forgetest.NewFake()})
			d.Boundary.Held = func() (confine.Boundary, error) { return test.boundary, test.err }
			d.Rules.Policy.Agents.RequireBoundary, d.Rules.Problem = test.required, test.broken
			f := boundary(d)
			if f.Status != test.status || f.Blocks {
				t.Errorf("%+v", f)
			}
			for _, want := range test.says {
				if said := f.Detail + " stops " + f.Stops; !strings.Contains(said, want) {
					t.Errorf("%q lacks %q", said, want)
				}
			}
		})
	}
}
