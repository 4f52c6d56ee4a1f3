package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/procedures/scripts"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/views"
)

// Scripts lists and runs the operator's scripts for people; *scripts.Desk is one. Errors are faults.
type Scripts interface {
	List(ctx context.Context, call operation.Call) (scripts.ScriptList, error)
	Show(ctx context.Context, call operation.Call, name string) (scripts.ScriptDetail, error)
	Runs(ctx context.Context, call operation.Call, q scripts.ScriptRunsRequest) (scripts.ScriptRunList, error)
	Run(ctx context.Context, call operation.Call, id string) (scripts.ScriptRunDetail, error)
	// Start runs a script for the person who calls. begun is called with the run's id when it starts.
	Start(ctx context.Context, call operation.Call, name string, begun func(id string)) (scripts.StartedScript, error)
	// Refused records a run that was refused before Start was asked.
	Refused(ctx context.Context, call operation.Call, name string, why *fault.Error)
}

// scriptPages show scripts and their runs, and start one.
type scriptPages struct {
	*renderer
	desk Scripts
}

const (
	scriptsPath = "/scripts"
	runsShown   = 20
	// startWait limits how long a form waits for a script whose start is blocked by other runs.
	startWait = 20 * time.Second
)

func (h *scriptPages) nav() pages.NavItem { return pages.NavItem{Path: scriptsPath, Text: "Scripts"} }

func (h *scriptPages) routes(page func(string, httpx.Func) httpx.Route) []httpx.Route {
	return []httpx.Route{
		page(scriptsPath, withQuery(h.showScripts)), page(scriptsPath+"/{name}", h.showScript), page("/script-runs/{id}",
			h.showScriptRun),
		{
			Method: "POST", Pattern: scriptsPath + "/{name}/run", Scope: access.Operate, Page: true, Handle: h.startScript,
			Body: &httpx.BodyLimit{Bytes: 256 << 10, Advice: "give less at once"}, Refused: h.recordRefusedRun,
		},
	}
}

// recordRefusedRun records a run that never came to its script.
func (h *scriptPages) recordRefusedRun(req *httpx.Request, why *fault.Error) error {
	h.desk.Refused(req.Context(), h.operationCall(req), req.PathValue("name"), why)
	return why
}

func (h *scriptPages) operationCall(req *httpx.Request) operation.Call {
	return operation.Call{Caller: req.Caller(), Ceiling: req.Principal.Ceiling, Person: true}
}

// scriptsPage is the list of scripts and of the last runs.
type scriptsPage struct {
	pages.Page
	List scripts.ScriptList
	Runs []runRow
	Off  string // why there is nothing to see
	sortable
}

type scriptsParams struct {
	Sort string `json:"sort,omitempty" enum:"name,-name,with,-with,parameters,-parameters,tier,-tier"`
}

func scriptColumns() []column[scripts.ScriptItem] {
	type entry = scripts.ScriptItem
	return []column[entry]{
		{name: "Script", key: "name", compare: func(a, b entry) int { return compareNames(a.Name, b.Name) }},
		{name: "Runs with", key: "with", class: "wide", compare: func(a, b entry) int {
			return compareNames(a.Interpreter, b.Interpreter)
		}},
		{name: "Parameters", key: "parameters", class: "number wide", largest: true, compare: func(a, b entry) int {
			return a.Parameters - b.Parameters
		}},
		{name: "From tier", key: "tier", class: "number", compare: func(a, b entry) int { return a.Tier - b.Tier }},
	}
}

// runRow is a run as pages show it.
type runRow struct {
	scripts.ScriptRunItem
	At time.Time
}

// Took returns its duration.
func (r runRow) Took() string {
	if r.State == string(record.ScriptRunning) {
		return "so far"
	}
	return views.Length(time.Duration(r.DurationMS) * time.Millisecond)
}

// Word describes its end.
func (r runRow) Word() views.Word {
	return views.Script(record.ScriptRun{
		State: record.ScriptRunState(r.State), Ending: record.ScriptEnding{ExitCode: r.ExitCode, TimedOut: r.TimedOut},
	})
}

func rowsOf(runs []scripts.ScriptRunItem) (rows []runRow) {
	for _, r := range runs {
		rows = append(rows, rowOf(r))
	}
	return rows
}

func rowOf(r scripts.ScriptRunItem) runRow {
	at, err := time.Parse(time.RFC3339, r.StartedAt)
	if err != nil { // ours
		at = time.Time{}
	}
	return runRow{r, at}
}

func (h *scriptPages) showScripts(req *httpx.Request, _ scriptsParams) (httpx.Response, error) {
	view := scriptsPage{Page: h.frame(req, "Scripts", scriptsPath)}
	var err error
	if view.List, err = h.desk.List(req.Context(), h.operationCall(req)); err != nil {
		view.Off = fault.From(err).Message
		return h.html("scripts", view)
	}
	if view.sortable, err = sortRows(req.URL.Query(), "name", scriptColumns(), view.List.Scripts); err != nil {
		return httpx.Response{}, err
	}
	runs, err := h.desk.Runs(req.Context(), h.operationCall(req), scripts.ScriptRunsRequest{Limit: runsShown})
	if err != nil {
		return httpx.Response{}, err
	}
	view.Runs = rowsOf(runs.Runs)
	return h.html("scripts", view)
}

// scriptPage is one script.
type scriptPage struct {
	pages.Page
	Script scripts.ScriptDetail
	Fields []scriptField
	Schema string
	Runs   []runRow
	WhyNot string // why there is no form
	Failed string // why the form comes back; "" for one that was not sent
}

// scriptField is an argument in the form that starts a script.
type scriptField struct {
	Name, Kind, About string
	Required          bool
	Values            []string // the only ones
	Default           string
	Given             string // as it was sent, if the form comes back
}

func (h *scriptPages) showScript(req *httpx.Request) (httpx.Response, error) {
	view, err := h.loadPage(req)
	return h.htmlOr(err, "script", view)
}

func (h *scriptPages) loadPage(req *httpx.Request) (scriptPage, error) {
	shown, err := h.desk.Show(req.Context(), h.operationCall(req), req.PathValue("name"))
	if err != nil {
		return scriptPage{}, err
	}
	runs, err := h.desk.Runs(req.Context(), h.operationCall(req),
		scripts.ScriptRunsRequest{Script: shown.Name, Limit: runsShown})
	if err != nil {
		return scriptPage{}, err
	}
	schema, err := json.MarshalIndent(shown.InputSchema, "", "  ")
	if err != nil {
		return scriptPage{}, err
	}
	view := scriptPage{
		Page: h.frame(req, shown.Name, scriptsPath), Script: shown, Schema: string(schema), Runs: rowsOf(runs.Runs),
		Fields: fieldsOf(shown.InputSchema),
	}
	switch {
	case !req.Principal.Scopes.Has(access.Operate):
		view.WhyNot = "Running a script needs the scope operate."
	case int(req.Principal.Ceiling) < shown.Tier:
		view.WhyNot = fmt.Sprintf("Running this script needs tier %d; you have tier %d.", shown.Tier,
			int(req.Principal.Ceiling))
	}
	return view, nil
}

// sendBack shows the form again as it was sent, and what is wrong with it.
func (h *scriptPages) sendBack(req *httpx.Request, form url.Values, why error) (httpx.Response, error) {
	view, err := h.loadPage(req)
	if err != nil || view.WhyNot != "" || !httpx.PrefersHTML(req.Request) {
		return httpx.Response{}, why
	}
	e := fault.From(why)
	view.Position, view.Failed = "", h.env.Message(e.Message)
	for i := range view.Fields {
		view.Fields[i].Given = form.Get("arg." + view.Fields[i].Name)
	}
	return h.htmlAgain(e, "script", view)
}

// fieldsOf returns the fields of a form for a schema, those that are required first.
func fieldsOf(schema map[string]any) (fields []scriptField) {
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]string)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property, _ := properties[name].(map[string]any)
		f := scriptField{Name: name, Required: slices.Contains(required, name)}
		f.Kind, _ = property["type"].(string)
		f.About, _ = property["description"].(string)
		f.Values, _ = property["enum"].([]string)
		if value, has := property["default"]; has {
			text, err := json.Marshal(value)
			if err == nil {
				f.Default = string(text)
			}
		}
		fields = append(fields, f)
	}
	slices.SortStableFunc(fields, func(a, b scriptField) int {
		if a.Required == b.Required {
			return 0
		}
		if a.Required {
			return -1
		}
		return 1
	})
	return fields
}

// startScript runs a script for a person, who is led to the run as soon as it has begun.
func (h *scriptPages) startScript(req *httpx.Request) (httpx.Response, error) {
	name := req.PathValue("name")
	form, err := httpx.ReadForm(req)
	if err != nil {
		return httpx.Response{}, h.recordRefusedRun(req, fault.From(err))
	}
	shown, err := h.desk.Show(req.Context(), h.operationCall(req), name)
	if err != nil {
		return httpx.Response{}, err
	}
	arguments, problems := scripts.FromTexts(shown.InputSchema, textsOf(form, shown.InputSchema))
	if len(problems) > 0 {
		return h.sendBack(req, form, h.recordRefusedRun(req, fault.New(fault.InvalidArgument, "%s", strings.Join(problems,
			"; "))))
	}
	call := h.operationCall(req)
	if call.Arguments, err = json.Marshal(arguments); err != nil {
		return httpx.Response{}, err
	}
	begun, ended := make(chan string, 1), make(chan error, 1)
	go func() { // the script goes on when the browser has been answered
		_, err := h.desk.Start(context.WithoutCancel(req.Context()), call, name, func(id string) { begun <- id })
		ended <- err
	}()
	wait := time.NewTimer(startWait)
	defer wait.Stop()
	select {
	case id := <-begun:
		return h.goTo(runPath(id)), nil
	case err := <-ended:
		select {
		case id := <-begun: // it was over at once
			return h.goTo(runPath(id)), nil
		default:
		}
		if err != nil {
			return h.sendBack(req, form, err)
		}
		return h.goTo(scriptPath(name)), nil // a dry run has no run to show
	case <-wait.C:
		return h.goTo(scriptPath(name)), nil // it waits until others have ended, and is in the list then
	}
}

// textsOf returns the arguments in a form. An empty field is none; a list has one item in each line.
func textsOf(form url.Values, schema map[string]any) map[string][]string {
	properties, _ := schema["properties"].(map[string]any)
	out := map[string][]string{}
	for field, values := range form {
		name, isArgument := strings.CutPrefix(field, "arg.")
		if !isArgument || len(values) == 0 || values[0] == "" {
			continue
		}
		property, _ := properties[name].(map[string]any)
		text := strings.ReplaceAll(values[0], "\r\n", "\n")
		if out[name] = []string{text}; property["type"] == "array" {
			out[name] = strings.Split(strings.Trim(text, "\n"), "\n")
		}
	}
	return out
}

func scriptPath(name string) string { return scriptsPath + "/" + url.PathEscape(name) }
func runPath(id string) string      { return "/script-runs/" + url.PathEscape(id) }

// runPage is one run.
type runPage struct {
	pages.Page
	Run    runRow
	Stdout string
	Stderr string
	Cut    bool
}

func (h *scriptPages) showScriptRun(req *httpx.Request) (httpx.Response, error) {
	r, err := h.desk.Run(req.Context(), h.operationCall(req), req.PathValue("id"))
	if err != nil {
		return httpx.Response{}, err
	}
	return h.html("scriptrun", runPage{
		Page: h.frame(req, "Run of "+r.Script, scriptsPath), Run: rowOf(r.ScriptRunItem), Stdout: r.Stdout, Stderr: r.Stderr,
		Cut: r.Truncated,
	})
}
