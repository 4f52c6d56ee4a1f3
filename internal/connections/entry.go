package connections

import (
	"time"

	"github.com/claudeops/claudeops/internal/record"
)

// Entry is an agent that is connected, as programs get it.
type Entry struct {
	ID       string     `json:"id" example:"01K9ZC3M4Q6T8V0X2Z4B6D8F0H"`
	Session  string     `json:"session,omitempty" doc:"The session of agents that it is of; absent for an agent that a person runs"`
	Token    string     `json:"token,omitempty" doc:"The name of the agent's token that let it in; absent for one of a session, which has a ticket" example:"laptop"`
	Tier     int        `json:"tier" doc:"The highest tier that it acts at" example:"2"`
	DryRun   bool       `json:"dry_run" doc:"Its proposals pass the gates and are not written"`
	ReadOnly bool       `json:"read_only" doc:"It can propose nothing"`
	Way      string     `json:"way" enum:"unix,https" doc:"How it came in"`
	Peer     string     `json:"peer" doc:"Who is at the other end, as far as it is known" example:"pid 4711, uid 1000"`
	Since    time.Time  `json:"since"`
	Calls    int        `json:"calls" doc:"Calls of tools under way, as of the last second or two"`
	CutAt    *time.Time `json:"cut_at,omitempty" doc:"When a person cut it off; it ends within a second or two"`
	CutBy    string     `json:"cut_by,omitempty" doc:"Who did"`
}

// EntriesOf are connections as programs get them; never nil.
func EntriesOf(open []record.Connection) []Entry {
	out := []Entry{}
	for _, c := range open {
		e := Entry{
			ID: c.ID, Session: c.Session, Token: c.Credential, Tier: int(c.Tier), DryRun: c.DryRun, ReadOnly: c.ReadOnly, Way: c.Way, Peer: c.Peer,
			Since: c.Since.UTC(), Calls: c.Calls, CutBy: c.CutBy,
		}
		if !c.CutAt.IsZero() {
			cut := c.CutAt.UTC()
			e.CutAt = &cut
		}
		out = append(out, e)
	}
	return out
}
