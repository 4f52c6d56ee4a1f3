package app

import (
	"context"
	"errors"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/system/files"
)

// stateFolder is the path of the folder of records, locks and keys; "" if this process needs none.
type stateFolder string

// stateFolderOf is the folder that a server needs. With PostgreSQL and a configured key it keeps nothing there but
// sessions.
func stateFolderOf(c config.Config) stateFolder {
	if c.Records.DatabaseURL != "" && c.Records.MarkKey != "" && c.Sessions.Schedule.Interval == 0 {
		return ""
	}
	return stateFolder(c.Records.Dir)
}

// writable tries to write a file in the folder. misconfigured, saying what to do, if that fails.
func (s stateFolder) writable() error {
	if s == "" {
		return nil
	}
	const block = 4 << 10 // less may fit into a disk that is full
	folder, err := files.MakeTemporary(string(s), ".writable-")
	if err != nil {
		return s.unusable(err)
	}
	_, err = folder.Write("block", make([]byte, block))
	if err = errors.Join(err, folder.Remove()); err != nil {
		return s.unusable(err)
	}
	return nil
}

func (s stateFolder) unusable(err error) error {
	return fault.Wrap(err, fault.Misconfigured,
		"the state folder %s cannot be written: make it writable for this user, make room on its disk, "+
			"or name another one with CLAUDEOPS_STATE_DIR", string(s))
}

// servedRecords are the records as a server's readiness sees them: what cannot be written is as good as gone.
type servedRecords struct {
	*store.History
	store  *store.Store
	folder stateFolder
}

// Ping reports whether the records can be read, and files written beside them.
func (r servedRecords) Ping(ctx context.Context) error {
	if err := r.store.Ping(ctx); err != nil {
		return err
	}
	return r.folder.writable()
}

// roundRecords implements prflow.RoundRecords.
type roundRecords struct {
	*store.Rounds
	*store.History
}

// NewRounds makes what looks at open pull requests again and again.
func (p *Parts) NewRounds() *prflow.Rounds {
	return prflow.NewRounds(p.Flow, roundRecords{p.Store.Rounds, p.Store.History})
}
