package prflow_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
)

func TestLabelsThatCannotBeSetAreAWarning(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Authority.Policy = mustPolicy(t, "labels: [extra]")
	b.fake.Script.After(forgetest.MethodOpenPullRequest, func() {})
	result := b.mustOpen(request(nil))
	if len(result.Warnings) != 0 {
		t.Errorf("warnings %v", result.Warnings)
	}
}

// assigning is a provider that knows reviewers and assignees.
type assigning struct {
	*forgetest.Fake
	asked *[]string
	fails error
}

func (a assigning) Assign(_ context.Context, _ gitprovider.RepoRef, number int, reviewers, assignees []string) error {
	*a.asked = append(*a.asked, fmt.Sprint(number, reviewers, assignees))
	return a.fails
}

func TestReviewersAndAssigneesOfThePolicyAreAskedWhereTheProviderKnowsSuchThings(t *testing.T) {
	t.Parallel()
	const rules = "pull_requests: {reviewers: [ann, acme/ops], assignees: [joe]}"
	setUp := func(t *testing.T, fails error) (*bench, *[]string) {
		b := newBench(t)
		asked := &[]string{}
		b.options.Authority.Policy = mustPolicy(t, rules)
		b.options.Registry = gitprovider.NewRegistry([]gitprovider.Registration{
			{Name: "fake", Provider: assigning{b.fake, asked, fails}},
		}, nil, "", nil)
		return b, asked
	}
	t.Run("they are asked once", func(t *testing.T) {
		b, asked := setUp(t, nil)
		result := b.mustOpen(request(nil))
		if want := fmt.Sprint(result.Number, []string{"ann", "acme/ops"}, []string{"joe"}); len(*asked) != 1 ||
			(*asked)[0] != want {
			t.Errorf("asked %q, want %q", *asked, want)
		}
		if len(result.Warnings) > 0 {
			t.Errorf("warnings %q", result.Warnings)
		}
	})
	t.Run("that somebody cannot be asked is a warning", func(t *testing.T) {
		b, _ := setUp(t, fault.New(fault.NotFound, "there is no user ann"))
		if result := b.mustOpen(request(nil)); len(result.Warnings) != 1 ||
			!strings.Contains(result.Warnings[0], "no user ann") {
			t.Errorf("warnings %q", result.Warnings)
		}
	})
	t.Run("a dry run asks nobody and says who would be", func(t *testing.T) {
		b, asked := setUp(t, nil)
		b.options.Authority.DryRun = true
		result, err := b.create(request(nil))
		if err != nil || len(*asked) > 0 || !slices.Contains(result.Preview.Calls, "ask ann, acme/ops for a review") {
			t.Errorf("%+v, %v, asked %q", result.Preview, err, *asked)
		}
	})
	t.Run("a provider that knows no such things is not asked", func(t *testing.T) {
		b := newBench(t)
		b.options.Authority.Policy = mustPolicy(t, rules)
		if result := b.mustOpen(request(nil)); len(result.Warnings) > 0 {
			t.Errorf("warnings %q", result.Warnings)
		}
	})
}
