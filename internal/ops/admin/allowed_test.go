package admin

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/settings/sources"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// list is a list of sources in a file, and an audit that notes how long the list was at each row.
type list struct {
	file  sources.File
	rows  []record.Attempt
	sizes []int
	fails error
}

func (l *list) Record(_ context.Context, a record.Attempt, _ *record.Proposal, _ ...record.Notice) error {
	if l.fails != nil {
		return l.fails
	}
	listed, err := l.file.Load()
	l.rows, l.sizes = append(l.rows, a), append(l.sizes, len(listed))
	return err
}

func (l *list) operation(t *testing.T, name string, authority operation.Authority) operation.Operation {
	t.Helper()
	return operation.Named(SourceActs{
		Kernel: operationtest.Kernel(t, authority, l), Audit: func() operation.Audit { return l },
		File:   func() (sources.File, error) { return l.file, nil },
		Policy: func() (policy.Policy, error) { return policy.Default(), nil },
	}.Operations(), name)
}

func TestTheListIsChangedOnlyByAPersonWhoMayAndOnTheRecord(t *testing.T) {
	const here, other = "https://git.example.org/team", "https://other.example.org"
	for name, c := range map[string]struct {
		operation, arguments string
		authority            operation.Authority
		door                 record.Door
		fails                error
		code                 fault.Code
		after                string // the origins of the list
		rows                 int
		message              string // of the first row
	}{
		"allow": {"allow_source", `{"origin":"` + other + `/"}`, operation.Authority{}, record.DoorCLI, nil,
			"", here + " " + other, 1, other},
		"allow what is there": {"allow_source", `{"origin":"` + here + `"}`, operation.Authority{}, record.DoorCLI, nil, "",
			here, 1, here},
		"with a token": {"allow_source", `{"origin":"` + other + `","token_env":"OPS_TOKEN","private":true}`,
			operation.Authority{}, record.DoorCLI, nil, "", here + " " + other, 1,
			other + ", with the token in OPS_TOKEN, also at a private address"},
		"a token of ours": {"allow_source", `{"origin":"` + other + `","token_env":"GITHUB_TOKEN"}`,
			operation.Authority{}, record.DoorCLI, nil, fault.InvalidArgument, here, 0, ""},
		"no address": {"allow_source", `{"origin":"registry"}`, operation.Authority{}, record.DoorCLI, nil,
			fault.InvalidArgument, here, 0, ""},
		"a password": {"allow_source", `{"origin":"https://joe:word@example.org"}`, operation.Authority{},
			record.DoorCLI, nil, fault.InvalidArgument, here, 0, ""},
		"an agent": {"allow_source", `{"origin":"` + other + `"}`, operation.Authority{}, record.DoorMCP, nil,
			fault.Forbidden, here, 1, ""},
		"an agent, remove": {"remove_source", `{"origin":"` + here + `"}`, operation.Authority{}, record.DoorMCP, nil,
			fault.Forbidden, here, 1, ""},
		"a program": {"allow_source", `{"origin":"` + other + `"}`, operation.Authority{}, record.DoorPoll, nil,
			fault.Forbidden, here, 1, ""},
		"in dry run": {"allow_source", `{"origin":"` + other + `"}`, operation.Authority{DryRun: true},
			record.DoorCLI, nil, fault.ReadOnly, here, 1, ""},
		"with a broken policy": {"allow_source", `{"origin":"` + other + `"}`,
			operation.Authority{Rules: operation.Rules{Problem: "broken"}}, record.DoorCLI, nil, fault.ReadOnly, here, 1, ""},
		"remove": {"remove_source", `{"origin":"` + here + `"}`, operation.Authority{}, record.DoorCLI, nil,
			"", "", 1, here},
		"remove, broken policy": {"remove_source", `{"origin":"` + here + `"}`,
			operation.Authority{Rules: operation.Rules{Problem: "broken"}}, record.DoorCLI, nil, "", "", 1, here},
		"remove, in dry run": {"remove_source", `{"origin":"` + here + `"}`, operation.Authority{DryRun: true},
			record.DoorCLI, nil, fault.ReadOnly, here, 1, ""},
		"remove what is not": {"remove_source", `{"origin":"` + other + `"}`, operation.Authority{}, record.DoorCLI, nil,
			fault.NotFound, here, 2, other},
		"no record": {"allow_source", `{"origin":"` + other + `"}`, operation.Authority{}, record.DoorCLI,
			errors.New("the disk is full"), fault.Internal, here, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := &list{file: sources.File{Path: filepath.Join(t.TempDir(), "sources.yaml")}}
			must.Do(t, l.file.Add(sources.Source{Origin: here}))
			l.fails = c.fails
			_, err := l.operation(t, c.operation, c.authority).Handle(t.Context(), operation.Call{
				Caller: operation.Caller{Actor: record.Actor{Door: c.door, Client: "ann"}}, Arguments: []byte(c.arguments),
			})
			if fault.CodeOf(err) != c.code || len(l.rows) != c.rows {
				t.Fatalf("%v, rows %+v", err, l.rows)
			}
			var origins []string
			listed, err := l.file.Load()
			for _, s := range listed {
				origins = append(origins, s.Origin)
			}
			if got := strings.Join(origins, " "); err != nil || got != c.after {
				t.Errorf("the list is %q, %v, want %q", got, err, c.after)
			}
			if c.rows > 0 && (!strings.HasPrefix(l.rows[0].Action, "source.") || c.message != "" &&
				l.rows[0].Message != c.message || l.sizes[0] != 1) {
				t.Errorf("rows %+v, the list had %v", l.rows, l.sizes)
			}
		})
	}
}

func TestTheListHasWhatThePolicyNamesAndWhatWasAllowed(t *testing.T) {
	l := &list{file: sources.File{Path: filepath.Join(t.TempDir(), "sources.yaml")}}
	o := l.operation(t, "list_sources", operation.Authority{})
	call := operation.Call{Caller: operation.Caller{Actor: record.Actor{Door: record.DoorCLI}}, Arguments: []byte(`{}`)}
	out, err := o.Handle(t.Context(), call)
	if view := o.Shown.View(out); err != nil || len(out.(AllowedSources).Sources) != 0 || len(view.Table) != 1 ||
		view.Empty == "" {
		t.Errorf("%+v, %v", out, err)
	}
	must.Do(t, l.file.Add(sources.Source{Origin: "https://example.org", TokenEnv: "OPS_TOKEN"}))
	out, err = o.Handle(t.Context(), call)
	if view := o.Shown.View(out); err != nil || strings.Join(view.Table[1], " ") != "https://example.org OPS_TOKEN "+
		l.file.Path {
		t.Errorf("%+v, %v", out, err)
	}
	must.Do(t, os.WriteFile(l.file.Path, []byte("sources: 7"), 0o600))
	if _, err := o.Handle(t.Context(), call); fault.CodeOf(err) != fault.Misconfigured {
		t.Errorf("a broken list: %v", err)
	}
}
