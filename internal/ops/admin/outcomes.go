// This file tells how the changes of agents ended.

package admin

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// OutcomeStore counts outcomes. internal/records/store implements it; errors are faults.
type OutcomeStore interface {
	Outcomes(ctx context.Context, since time.Time, by record.OutcomesBy) (record.OutcomeReport, error)
}

// OutcomeActs are the report for people. All fields are required.
type OutcomeActs struct {
	Kernel func() *operation.Kernel
	Store  func() OutcomeStore
	Now    func() time.Time
}

// OutcomeRequest says what to count.
type OutcomeRequest struct {
	Since string `json:"since,omitempty" maxLength:"20" default:"30d" doc:"How far to look back, from 1d to 3650d, to the beginning of a day in UTC" example:"30d"`
	By    string `json:"by,omitempty" enum:"agent,tier,repository,session" default:"agent" doc:"What to group the changes by"`
}

// Bounds of how far a report looks back.
const (
	day            = 24 * time.Hour
	defaultSince   = 30 * day
	maxOutcomeDays = 3650
)

// ParseSince returns how far a report looks back; text is an age such as 30d, "" for the default.
func ParseSince(text string) (time.Duration, error) {
	if text == "" {
		return defaultSince, nil
	}
	age, err := policy.ParseAge(text)
	if err != nil || age < day || age > maxOutcomeDays*day {
		return 0, fmt.Errorf("since is %q; give 1d to %dd, such as 30d", text, maxOutcomeDays)
	}
	return age, nil
}

// Operation reports how changes ended.
func (a OutcomeActs) Operation() operation.Operation {
	return operation.Define(a.Kernel, "", operation.Operation{
		Name: "outcomes", Summary: "Tell how the changes of agents ended", Effect: operation.Read,
		Command: "outcomes", Needs: operation.Needs{For: operation.People, Scope: access.Read},
		Route: operation.Route{Method: http.MethodGet, Path: "/outcomes", ID: "getOutcomes"},
		Shown: operation.Shown{
			Help: "outcomes counts the pull requests that were opened since a day, by how they stand now, and the attempts that\n" +
				"were refused. TO REVIEW and TO MERGE are medians. Of an agent or a repository, COST is its share of what its\n" +
				"sessions cost.",
			Example: "  claudeops outcomes --since 90d --by repository",
			View:    func(out any) operation.View { return outcomeView(out.(record.OutcomeReport)) },
			JSON:    func(out any) any { return out },
		},
	}, operation.CallSpec[OutcomeRequest]{
		Check: func(in OutcomeRequest) *operation.Fault {
			if _, err := ParseSince(in.Since); err != nil {
				return operation.Invalid("since", "%s", err)
			}
			return nil
		},
	}, func(ctx context.Context, _ operation.Call, in OutcomeRequest) (record.OutcomeReport, error) {
		age, err := ParseSince(in.Since)
		if err != nil {
			return record.OutcomeReport{}, err
		}
		return a.Store().Outcomes(ctx, a.Now().Add(-age), record.OutcomesBy(cmp.Or(in.By, string(record.ByAgent))))
	})
}

// outcomeView returns the report for the terminal; the total is its last line.
func outcomeView(r record.OutcomeReport) operation.View {
	v := operation.View{
		Empty: "No change was proposed or refused since " + r.Since.Format(time.DateOnly) + ".",
		Table: [][]string{{strings.ToUpper(string(r.By)), "PROPOSED", "MERGED", "REVISED", "CLOSED", "IGNORED", "OPEN",
			"REFUSED", "TO REVIEW", "TO MERGE", "COST", "REFUSED FOR"}},
		Text: []string{strings.ToUpper(string(r.By)), "REFUSED FOR"},
		Goes: []string{"REVISED", "TO REVIEW", "OPEN", "COST"},
	}
	if len(r.Groups) == 0 {
		return v
	}
	r.Total.Name = "all"
	for _, s := range append(r.Groups, r.Total) {
		n := func(n int64) string { return strconv.FormatInt(n, 10) }
		var reasons []string
		for _, c := range s.Reasons {
			reasons = append(reasons, fmt.Sprintf("%s %d", c.Code, c.Count))
		}
		cost := ""
		if s.CostUSD > 0 {
			cost = fmt.Sprintf("$%.2f", s.CostUSD)
		}
		v.Table = append(v.Table, []string{s.Name, n(s.Proposed), n(s.Merged), n(s.Revised), n(s.Closed), n(s.Ignored),
			n(s.Open), n(s.Refused), record.MinutesText(s.MinutesToReview), record.MinutesText(s.MinutesToMerge), cost,
			strings.Join(reasons, ", ")})
	}
	return v
}
