// This file lets people stop everything that agents and schedules do, or what they do in one repository.

package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// Names of the operations that pause and resume.
const (
	ActPause  = "pause"
	ActResume = "resume_paused"
)

// PauseStore keeps what is paused. internal/records/store implements it; errors are faults.
type PauseStore interface {
	Pause(ctx context.Context, p record.Pause, stopSessions bool, row record.Attempt) (record.Pause, error)
	Resume(ctx context.Context, owner, repo string,
		row func(ended []record.Pause) record.Attempt) ([]record.Pause, error)
	Pauses(ctx context.Context) ([]record.Pause, error)
	Underway(ctx context.Context, p record.Pause) (record.Underway, error)
}

// PauseActs are the operations for people. All fields are required.
type PauseActs struct {
	Kernel func() *operation.Kernel
	Store  func() PauseStore
	Now    func() time.Time
	Sleep  func(ctx context.Context, d time.Duration)
}

// PauseRequest says what to pause.
type PauseRequest struct {
	Why  string `json:"why" required:"true" maxLength:"300" doc:"For people and agents who meet the pause" example:"The storage is being moved"`
	Repo string `json:"repo,omitempty" maxLength:"200" doc:"Only the repository owner/name, at whatever provider" example:"acme/mail"`
	For  string `json:"for,omitempty" maxLength:"20" doc:"How long, such as 2h or 3d; until somebody resumes if it is left out" example:"2h"`
	// StopSessions has the sessions that run end, too.
	StopSessions bool `json:"stop_sessions,omitempty" doc:"Stop the sessions that run as well"`
}

// ResumeRequest says what to resume.
type ResumeRequest struct {
	Repo string `json:"repo,omitempty" maxLength:"200" doc:"Only the pause of the repository owner/name; every pause if it is left out" example:"acme/mail"`
}

// PauseEntry is a pause as programs get it.
type PauseEntry struct {
	Repo  string    `json:"repo,omitempty" doc:"Absent where everything is paused" example:"acme/mail"`
	Why   string    `json:"why"`
	By    string    `json:"by"`
	Since time.Time `json:"since"`
	Until time.Time `json:"until,omitzero" doc:"Absent until somebody resumes"`
}

// PauseAnswer is a pause that has begun.
type PauseAnswer struct {
	PauseEntry
	Writes   int `json:"still_writing" doc:"Calls that had begun to write before, and have not ended"`
	Scripts  int `json:"scripts_running"`
	Sessions int `json:"sessions_running"`
}

// PauseList is what is paused now.
type PauseList struct {
	Pauses []PauseEntry `json:"pauses"`
}

// Changes implements operation.NoETag: a pause ends by itself.
func (l PauseList) Changes() bool { return len(l.Pauses) > 0 }

// ResumeAnswer lists the pauses that were ended.
type ResumeAnswer struct {
	Ended []PauseEntry `json:"ended"`
}

// Operations returns the list, pause and resume.
func (a PauseActs) Operations() []operation.Operation {
	needs := operation.Needs{For: operation.People, Scope: access.Operate, Dry: operation.DryDone}
	list := operation.Operation{
		Name: "list_pauses", Summary: "List what is paused", Effect: operation.Read,
		Needs: operation.Needs{For: operation.People, Scope: access.Read},
		Route: operation.Route{Method: http.MethodGet, Path: "/pauses", ID: "listPauses"},
	}
	pause := operation.Operation{
		Name: ActPause, Action: "pause", Summary: "Stop what agents and schedules do", Effect: operation.Write,
		Command: "pause", Needs: needs,
		Route: operation.Route{Method: http.MethodPost, Path: "/pause", ID: "pause", MaxBody: 8 << 10,
			TooLarge: "say less", Takes: pauseWait + time.Minute,
			Notes: "It is committed before anything is waited for: then calls that had begun to write may end, for at most 30 " +
				"seconds."},
		Shown: operation.Shown{
			Fresh: true,
			Help: "pause stops proposals, revisions, replies, deployments, scripts and starts of sessions, on every machine that\n" +
				"shares the records. Reading goes on, and people may still review, merge and close. A call that had begun to write\n" +
				"is let finish; pause waits for that. With --repo it stops what happens in that repository.",
			Example: "  claudeops pause --why \"The storage is being moved\" --for 2h\n" +
				"  claudeops pause --why \"Frozen\" --repo acme/mail",
			Said: func(out any, _ bool) string { return out.(PauseAnswer).text() },
		},
	}
	resume := operation.Operation{
		Name: ActResume, Action: "resume", Summary: "End what was paused", Effect: operation.Write, Command: "resume",
		Needs: needs,
		Route: operation.Route{Method: http.MethodPost, Path: "/resume", ID: "resume", MaxBody: 8 << 10,
			TooLarge: "name one repository"},
		Shown: operation.Shown{Fresh: true, Example: "  claudeops resume\n  claudeops resume --repo acme/mail",
			Said: func(out any, _ bool) string { return out.(ResumeAnswer).text() }},
	}
	return []operation.Operation{
		operation.Define(a.Kernel, "", list, operation.CallSpec[struct{}]{}, a.list),
		operation.Define(a.Kernel, "", pause, operation.CallSpec[PauseRequest]{
			Timeout: pauseWait + time.Minute, Check: checkPause,
			Target: func(in PauseRequest) operation.Target { return targetOfRepo(in.Repo) },
		}, a.pause),
		operation.Define(a.Kernel, "", resume, operation.CallSpec[ResumeRequest]{
			Check:  func(in ResumeRequest) *operation.Fault { return checkRepo(in.Repo) },
			Target: func(in ResumeRequest) operation.Target { return targetOfRepo(in.Repo) },
		}, a.resume),
	}
}

// Bounds of a pause, and how long it waits for what had begun to write.
const (
	minPause  = time.Minute
	maxPause  = 365 * 24 * time.Hour
	pauseWait = 30 * time.Second
	pauseLook = 100 * time.Millisecond
)

func checkPause(in PauseRequest) *operation.Fault {
	if strings.TrimSpace(in.Why) == "" {
		return operation.Invalid("why", "say why, for those who meet the pause")
	}
	if _, err := lengthOf(in); err != nil {
		return operation.Invalid("for", "for is %q: %s", in.For, err)
	}
	return checkRepo(in.Repo)
}

// lengthOf returns how long a pause lasts; 0 until it is resumed.
func lengthOf(in PauseRequest) (time.Duration, error) {
	if in.For == "" {
		return 0, nil
	}
	length, err := policy.ParseAge(in.For)
	if err != nil || length < minPause || length > maxPause {
		return 0, errors.New("give a time of 1m to 365d, such as 2h")
	}
	return length, nil
}

func checkRepo(repo string) *operation.Fault {
	owner, name, _ := strings.Cut(repo, "/")
	if repo == "" || gitprovider.CheckRepoPart(owner) == nil && gitprovider.CheckRepoPart(name) == nil {
		return nil
	}
	return operation.Invalid("repo", "a repository is owner/name")
}

func targetOfRepo(repo string) operation.Target {
	owner, name, _ := strings.Cut(repo, "/")
	return operation.Target{Owner: owner, Name: name}
}

func (a PauseActs) list(ctx context.Context, _ operation.Call, _ struct{}) (PauseList, error) {
	last, err := a.Store().Pauses(ctx)
	return PauseList{PauseEntries(last)}, err
}

// PauseEntries converts pauses for programs; the result is never nil.
func PauseEntries(pauses []record.Pause) []PauseEntry {
	out := []PauseEntry{}
	for _, p := range pauses {
		out = append(out, pauseEntry(p))
	}
	return out
}

func pauseEntry(p record.Pause) PauseEntry {
	e := PauseEntry{Why: p.Why, By: p.By, Since: p.Since.UTC()}
	if p.Owner != "" {
		e.Repo = p.Scope()
	}
	if !p.Until.IsZero() {
		e.Until = p.Until.UTC()
	}
	return e
}

// pause commits the pause, and then waits for the writes that had begun before. That they go on is not an error.
func (a PauseActs) pause(ctx context.Context, call operation.Call, in PauseRequest) (PauseAnswer, error) {
	at := targetOfRepo(in.Repo)
	p := record.Pause{Owner: at.Owner, Repo: at.Name, Why: strings.TrimSpace(in.Why), By: call.Caller.String()}
	length, err := lengthOf(in)
	if err != nil {
		return PauseAnswer{}, err
	}
	message := p.Scope()
	if length > 0 {
		p.Until = a.Now().Add(length)
		message += " until " + p.Until.UTC().Format(time.RFC3339)
	}
	if in.StopSessions {
		message += ", with the sessions that run"
	}
	p, err = a.Store().Pause(ctx, p, in.StopSessions, call.Done(message+": "+p.Why))
	if err != nil {
		return PauseAnswer{}, err
	}
	out := PauseAnswer{PauseEntry: pauseEntry(p)}
	for began := a.Now(); ; a.Sleep(ctx, pauseLook) {
		left, err := a.Store().Underway(context.WithoutCancel(ctx), p)
		if err != nil {
			e := fault.From(err)
			return out, fault.Wrap(err, e.Code, "it is paused, but not seen whether something still writes: %s", e.Message)
		}
		out.Writes, out.Scripts, out.Sessions = left.Writes, left.Scripts, left.Sessions
		if left.Writes == 0 || ctx.Err() != nil || a.Now().Sub(began) > pauseWait {
			return out, nil
		}
	}
}

func (a PauseActs) resume(ctx context.Context, call operation.Call, in ResumeRequest) (ResumeAnswer, error) {
	at := targetOfRepo(in.Repo)
	ended, err := a.Store().Resume(ctx, at.Owner, at.Name, func(ended []record.Pause) record.Attempt {
		var scopes []string
		for _, p := range ended {
			scopes = append(scopes, p.Scope())
		}
		return call.Done(strings.Join(scopes, ", "))
	})
	return ResumeAnswer{PauseEntries(ended)}, err
}

// Scope names what is paused, in words.
func (e PauseEntry) Scope() string {
	if e.Repo == "" {
		return "Everything"
	}
	return e.Repo
}

// text returns the answer for the terminal.
func (a PauseAnswer) text() string {
	out := a.Scope() + " is paused"
	if a.Until.IsZero() {
		out += ", until claudeops resume."
	} else {
		out += " until " + a.Until.Format(time.RFC3339) + "."
	}
	for _, left := range []struct {
		n         int
		one, many string
	}{
		{a.Writes, "1 call that had begun to write has not ended", "%d calls that had begun to write have not ended"},
		{a.Scripts, "1 script runs on", "%d scripts run on"},
		{a.Sessions, "1 session runs on, and can only read", "%d sessions run on, and can only read"},
	} {
		switch {
		case left.n == 1:
			out += " " + left.one + "."
		case left.n > 1:
			out += " " + fmt.Sprintf(left.many, left.n) + "."
		}
	}
	return out
}

// text returns the answer for the terminal.
func (a ResumeAnswer) text() string {
	var scopes []string
	for _, e := range a.Ended {
		scopes = append(scopes, e.Scope())
	}
	return "Resumed: " + strings.Join(scopes, ", ") + "."
}
