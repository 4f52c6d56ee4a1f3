// Package connections is the use case of what a person sees and does of the agents that are connected now: list them, cut one off. The
// command line, REST and the dashboard call it, so that one rule holds for all; see internal/people.
package connections

import (
	"context"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/people"
	"github.com/claudeops/claudeops/internal/record"
)

// KeptOut is how long the token of a connection that was cut off lets nobody in. Revoking the token keeps its holder out for good.
const KeptOut = time.Hour

// Store knows the connections of all processes that share the records. internal/store implements it; errors are faults.
type Store interface {
	// Connections lists those that are open, the oldest first.
	Connections(ctx context.Context) ([]record.Connection, error)
	// CutConnection has the process that serves the connection end it, and appends the rows to the audit; not_found if none with the id is open.
	CutConnection(ctx context.Context, id, by string, rows ...record.Attempt) error
	// LastCut is when somebody last cut off a connection of a token, by its name; zero if nobody has in a time longer than KeptOut.
	LastCut(ctx context.Context, credential string) (time.Time, error)
}

// Service is the use case. All fields are required. It is safe for concurrent use.
type Service struct {
	Store  Store
	People *people.Service
	Now    func() time.Time
}

// List lists the agents that are connected now, the oldest connection first. Those that a person runs with an mcp-server of their own are
// not among them: such a server is no connection to one of ours.
func (s *Service) List(ctx context.Context) ([]record.Connection, error) {
	return s.Store.Connections(ctx)
}

// Cut cuts a connection off, and records who did. The process that serves it ends it within a second or two: calls that have written
// nothing end, others are finished and recorded. With it end all others of the same session or token. A session's ticket lets nobody in any
// more; the session itself goes on without us. A token lets nobody in for KeptOut. not_found if none with the id is open.
func (s *Service) Cut(ctx context.Context, by people.Operator, id string) error {
	act := people.Act{Action: people.CutConnection, By: by.By, RequestID: by.RequestID}
	return s.People.Do(ctx, act, func(row people.Row) error {
		open, err := s.Store.Connections(ctx)
		if err != nil {
			return err
		}
		what := "connection " + id
		for _, c := range open {
			if c.ID == id {
				what = s.describe(c)
			}
		}
		return s.Store.CutConnection(ctx, id, by.By.Name, row(what))
	})
}

// describe is a connection that is cut off, as the audit has it.
func (s *Service) describe(c record.Connection) string {
	what := fmt.Sprintf("connection %s of tier %s (%s)", c.ID, c.Tier, c.Peer)
	if c.Session != "" {
		return what + " of session " + c.Session
	}
	return fmt.Sprintf("%s of token %s, which lets nobody in until %s", what, c.Credential, s.Now().Add(KeptOut).UTC().Format(time.RFC3339))
}

// Refused records a cut that was refused before it came to Cut. It returns the error with the request id of the row.
func (s *Service) Refused(ctx context.Context, by people.Operator, why error) error {
	return s.People.Refused(ctx, people.Act{Action: people.CutConnection, By: by.By, RequestID: by.RequestID}, why)
}

// Admit is unauthenticated for a token one of whose connections was cut off less than KeptOut ago. A token that was made since, with the
// name of another one, is not meant.
func Admit(ctx context.Context, store Store, token string, made, now time.Time) error {
	cut, err := store.LastCut(ctx, token)
	if err != nil {
		return err
	}
	if until := cut.Add(KeptOut); cut.After(made) && now.Before(until) {
		return fault.New(fault.Unauthenticated, "a person cut off the agent with this token; it lets nobody in until %s", until.UTC().Format(time.RFC3339))
	}
	return nil
}
