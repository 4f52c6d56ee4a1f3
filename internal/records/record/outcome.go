package record

import (
	"strconv"
	"time"
)

// OutcomesBy says what outcomes are grouped by.
type OutcomesBy string

// The groups.
const (
	ByAgent      OutcomesBy = "agent" // the caller, as the record names it
	ByTier       OutcomesBy = "tier"
	ByRepository OutcomesBy = "repository"
	BySession    OutcomesBy = "session"
)

// OutcomesBys lists them.
func OutcomesBys() []OutcomesBy { return []OutcomesBy{ByAgent, ByTier, ByRepository, BySession} }

// IgnoredAfter is how many days a pull request waits, without a review, until it counts as ignored.
const IgnoredAfter = 7

// MaxOutcomeGroups bounds the groups that a report lists.
const MaxOutcomeGroups = 50

// OutcomeReport says how the changes of agents ended since the beginning of a day, in UTC.
type OutcomeReport struct {
	Since  time.Time    `json:"since" doc:"The beginning of a day, in UTC: changes that were proposed or refused since"`
	By     OutcomesBy   `json:"by" enum:"agent,tier,repository,session"`
	Total  OutcomeSum   `json:"total"`
	Groups []OutcomeSum `json:"groups" doc:"Those with the most changes first, at most 50"`
	More   int          `json:"more_groups,omitempty" doc:"How many further groups there are"`
}

// OutcomeSum counts the changes of a group. Those that became pull requests are counted by how they stand now.
type OutcomeSum struct {
	Name     string      `json:"name,omitempty" doc:"Agent, tier, repository or id of the session; absent for the total" example:"nightly (claude-code/2.1)"`
	Proposed int64       `json:"proposed" doc:"Pull requests: merged, closed, ignored, open and gone together"`
	Merged   int64       `json:"merged"`
	Revised  int64       `json:"merged_after_revision" doc:"Of those that were merged"`
	Closed   int64       `json:"closed" doc:"By a person, without a merge"`
	Ignored  int64       `json:"ignored" doc:"Open for 7 days, and nobody has reviewed it; or closed by Claude Ops because nobody had acted"`
	Open     int64       `json:"open" doc:"The other open ones"`
	Gone     int64       `json:"gone" doc:"The forge no longer knows them"`
	Refused  int64       `json:"refused" doc:"Attempts that did not become a pull request"`
	Reasons  []CodeCount `json:"refused_by_reason" doc:"The most frequent first"`
	// MinutesToReview and MinutesToMerge are lower medians: half of them took as long or less.
	MinutesToReview int64 `json:"median_minutes_to_review,omitempty" doc:"From the opening to a person's first review, or to the end; above 6 hours full hours. Absent: none was reviewed"`
	MinutesToMerge  int64 `json:"median_minutes_to_merge,omitempty" doc:"From the opening; absent: none was merged"`
	// CostUSD is that of the sessions. Of an agent or a repository a session counts by its share of the session's pull
	// requests.
	CostUSD      float64 `json:"cost_usd" doc:"Of the sessions that began since; shared among the pull requests of a session"`
	CostPerMerge float64 `json:"cost_usd_per_merged,omitempty" doc:"Absent where nothing was merged, or no cost is known"`
}

// Changes returns the number of changes that were proposed or refused.
func (s OutcomeSum) Changes() int64 { return s.Proposed + s.Refused }

// MinutesText returns a number of minutes of a report in words for people; "" for none.
func MinutesText(minutes int64) string {
	const hour, day = 60, 24 * 60
	switch {
	case minutes == 0:
		return ""
	case minutes < 2*hour:
		return strconv.FormatInt(minutes, 10) + " min"
	case minutes < 2*day:
		return strconv.FormatInt(minutes/hour, 10) + " h"
	}
	return strconv.FormatInt(minutes/day, 10) + " d"
}
