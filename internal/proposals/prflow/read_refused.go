package prflow

import (
	"context"
	"encoding/json"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
)

// refusedRead is a read that may have been refused, for the record.
type refusedRead struct {
	action      string
	owner, repo string
	paths       []string
}

// refusedReadOf is refusedRead for a read whose arguments name a repository.
func (s *Service) refusedReadOf(ctx context.Context, call operation.Call, action string, err error) error {
	var asked struct {
		RepoOwner string `json:"repo_owner"`
		RepoName  string `json:"repo_name"`
	}
	_ = json.Unmarshal(call.Arguments, &asked) // what is malformed is refused for that, and leaves no row
	return s.refusedRead(ctx, call.Caller, refusedRead{action: action, owner: asked.RepoOwner, repo: asked.RepoName}, err)
}

// refusedRead records a read that was refused by authority: because of who asks, for which path or which repository.
// Reads that were answered, and those that failed for another reason, leave no row. The error is err with its place in
// the audit, or why it is not there.
func (s *Service) refusedRead(ctx context.Context, caller operation.Caller, read refusedRead, err error) error {
	e := fault.From(err)
	if e == nil || e.Code != fault.ScopeDenied && e.Code != fault.TierDenied && e.Code != fault.RepoNotAllowed {
		return err
	}
	now, id := s.Clock.Now(), operation.RequestIDOf(err)
	row := record.Attempt{
		Time: now, RequestID: id, Door: caller.Door, Caller: caller.Name, Tier: s.Authority.Tier, Session: s.Authority.Session,
		Action: read.action, Owner: read.owner, Repo: read.repo,
		Outcome: record.OutcomeRefused, Code: e.Code, Message: s.Secrets.Redact(e.Message),
	}
	for _, path := range read.paths {
		if _, err := gitprovider.ParsePath(path); err != nil {
			path = quote(path)
		}
		found, err := s.Secrets.Secrets(ctx, "path", path)
		if err != nil || len(found) > 0 || s.Secrets.Redact(path) != path {
			path, row.Message = Withheld, string(e.Code)+": "+Withheld
		}
		row.Paths = append(row.Paths, path)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if recordErr := s.Ledger.Record(ctx, row, nil); recordErr != nil {
		s.log("request_id", id).error("refused read not recorded", recordErr)
		return operation.Logged(fault.From(recordErr), id)
	}
	return operation.Recorded(e, id)
}
