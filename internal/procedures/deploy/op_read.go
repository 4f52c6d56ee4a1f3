package deploy

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/textedit"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/system/fileset"
)

// StatusRequest says what to compare with what was deployed.
type StatusRequest struct {
	Repo    string   `json:"repo,omitempty" doc:"Path to the agentpack config repo (default: $AGENTPACK_HOME/repo)."`
	Profile string   `json:"profile,omitempty" default:"default" doc:"Profile of the configuration"`
	Target  string   `json:"target,omitempty" default:"all" enum:"all,codex,claude_code,cursor,vscode" doc:"Agent program to look at"`
	Machine string   `json:"machine,omitempty" doc:"Machine id for machine overlays. Omit to auto-detect."`
	Only    []string `json:"only,omitempty" enum:"missing,modified,extra" doc:"Only drift of these kinds"`
	DryRun  bool     `json:"dry_run,omitempty" default:"false" doc:"No effect: nothing is written anyway"`
}

// DriftSummary counts drift.
type DriftSummary struct {
	Modified int `json:"modified"`
	Missing  int `json:"missing"`
	Extra    int `json:"extra"`
}

func (s *DriftSummary) countKind(k fileset.DriftKind) {
	switch k {
	case fileset.Modified:
		s.Modified++
	case fileset.Missing:
		s.Missing++
	case fileset.Extra:
		s.Extra++
	}
}

// RootSummary counts the drift of a folder.
type RootSummary struct {
	Target    fileset.TargetName `json:"target"`
	Root      string             `json:"root"`
	RootPosix string             `json:"root_posix"`
	Summary   DriftSummary       `json:"summary"`
}

// NextAction is a possible action on a finding.
type NextAction struct {
	Action  string `json:"action"`
	Command string `json:"command"`
}

// StatusData says what is not as it was deployed.
type StatusData struct {
	Profile       string               `json:"profile"`
	Targets       []fileset.TargetName `json:"targets"`
	Drift         []fileset.Drift      `json:"drift"`
	Summary       DriftSummary         `json:"summary"`
	SummaryByRoot []RootSummary        `json:"summary_by_root"`
	SummaryTotal  *DriftSummary        `json:"summary_total,omitempty" doc:"Without the filter only"`
	NextActions   []string             `json:"next_actions,omitempty"`
	Detailed      []NextAction         `json:"next_actions_detailed,omitempty"`
}

func (s toolDeps) statusOperation() operation.Operation {
	o := readOperation(ToolStatus, "See drift", "Say which files are not as they were deployed",
		"Say which files are not as they were deployed: modified, missing, or extra, which nobody has deployed. only "+
			"filters. Changes nothing.")
	way := operation.CallSpec[StatusRequest]{Timeout: readTimeout, Check: func(in StatusRequest) *operation.Fault {
		return checkArgumentLengths(map[string]string{"repo": in.Repo, "profile": in.Profile, "machine": in.Machine})
	}}
	return operation.Define(s.kernel, ToolsetName, o, way,
		func(ctx context.Context, call operation.Call, in StatusRequest) (out Envelope[StatusData], err error) {
			service := s.service()
			if in.Repo, err = service.fromCaller(call, in.Repo); err != nil {
				return out, faultOf(err)
			}
			ctx, fetched := noting(ctx)
			defer func() { fetched.noteTo(call, operation.Note{}) }()
			plan := PlanRequest{Repo: in.Repo, Profile: in.Profile, Target: in.Target, Machine: in.Machine}
			targets, list, warnings, err := service.Status(ctx, plan.planInput())
			if err != nil {
				return out, faultOf(err)
			}
			return enveloped(ToolStatus, service.version, statusData(plan.profile(), targets, list, in.Only), warnings), nil
		})
}

// statusData counts and filters drift.
func statusData(profile string, targets []fileset.TargetName, list []fileset.Drift, only []string) StatusData {
	data := StatusData{Profile: profile, Targets: append([]fileset.TargetName{}, targets...), Drift: []fileset.Drift{},
		SummaryByRoot: []RootSummary{}}
	var total DriftSummary
	for _, item := range list {
		total.countKind(item.Kind)
		if len(only) > 0 && !slices.Contains(only, string(item.Kind)) {
			continue
		}
		data.Drift = append(data.Drift, item)
		data.Summary.countKind(item.Kind)
		at := slices.IndexFunc(data.SummaryByRoot,
			func(r RootSummary) bool { return r.Target == item.Target && r.Root == item.Root })
		if at < 0 {
			at = len(data.SummaryByRoot)
			data.SummaryByRoot = append(data.SummaryByRoot, RootSummary{Target: item.Target, Root: item.Root,
				RootPosix: item.RootPosix})
		}
		data.SummaryByRoot[at].Summary.countKind(item.Kind)
	}
	if len(only) > 0 {
		data.SummaryTotal = &total
	}
	if total.Modified+total.Missing > 0 {
		data.Detailed = []NextAction{{"diff", "claudeops deploy diff"}, {"deploy_apply", "claudeops deploy apply"}}
		for _, a := range data.Detailed {
			data.NextActions = append(data.NextActions, a.Command)
		}
	}
	return data
}

// maxDiffed bounds the files that are compared line by line, in bytes; and all differences of an answer together.
const (
	maxDiffed = 100 << 10
	maxDiffs  = 16 << 20
)

// FileDiff is the change of a file.
type FileDiff struct {
	Target     fileset.TargetName `json:"target"`
	Root       string             `json:"root"`
	Path       string             `json:"path"`
	Op         fileset.Op         `json:"op"`
	BeforeHash *string            `json:"before_hash" doc:"sha256:HEX"`
	AfterHash  *string            `json:"after_hash"`
	Unified    *string            `json:"unified" doc:"Unified diff; null for files that are not text or too large"`
}

// DiffData is a plan with what changes in each file.
type DiffData struct {
	Profile string               `json:"profile"`
	Targets []fileset.TargetName `json:"targets"`
	Changes []fileset.Change     `json:"changes"`
	Summary fileset.Summary      `json:"summary"`
	Files   []FileDiff           `json:"files"`
}

func (s toolDeps) diffOperation() operation.Operation {
	o := readOperation(ToolDiff, "Show what a deployment would change", "Show the lines that a deployment would change",
		"The same as plan, with a unified diff for each file in files[].unified. Changes nothing.")
	way := operation.CallSpec[PlanRequest]{Check: PlanRequest.check, Timeout: readTimeout}
	return operation.Define(s.kernel, ToolsetName, o, way,
		func(ctx context.Context, call operation.Call, in PlanRequest) (out Envelope[DiffData], err error) {
			service := s.service()
			p, err := s.planned(ctx, call, service, in)
			if err != nil {
				return out, faultOf(err)
			}
			files, warnings, err := Diff(p)
			if err != nil {
				return out, faultOf(err)
			}
			data := dataOf(in.profile(), p)
			return enveloped(ToolDiff, service.version, DiffData{data.Profile, data.Targets, data.Changes, data.Summary, files},
				append(p.Warnings, warnings...)), nil
		})
}

// Diff shows what changes in each file, in the plan's order. A warning names each that is not shown.
func Diff(p *fileset.Plan) (files []FileDiff, warnings []string, err error) {
	files = []FileDiff{}
	total := 0
	for _, c := range p.Changes {
		one := FileDiff{Target: c.Target, Path: c.Path, Root: p.Root(c), Op: c.Op, BeforeHash: prefixed(c.Before),
			AfterHash: prefixed(c.After)}
		var before, after []byte
		if c.Before != nil {
			if before, err = p.Read(c.Path); err != nil {
				return nil, nil, err
			}
		}
		if c.After != nil {
			if after, err = c.Content().Bytes(); err != nil {
				return nil, nil, err
			}
		}
		switch why := notDiffed(before, after, total); why {
		case "":
			text := unified(c, before, after)
			total += len(text)
			one.Unified = &text
		default:
			warnings = append(warnings, fmt.Sprintf("%s is not shown: %s", c.PathPosix, why))
		}
		files = append(files, one)
	}
	return files, warnings, nil
}

func unified(c fileset.Change, before, after []byte) string {
	from, to := "a"+c.PathPosix, "b"+c.PathPosix
	if c.Before == nil {
		from = "/dev/null"
	}
	if c.After == nil {
		to = "/dev/null"
	}
	return textedit.Unified(from, to, string(before), string(after))
}

func notDiffed(before, after []byte, total int) string {
	switch {
	case total > maxDiffs:
		return fmt.Sprintf("the differences before it have more than %d MiB", maxDiffs>>20)
	case len(before) > maxDiffed || len(after) > maxDiffed:
		return fmt.Sprintf("it has more than %d KiB", maxDiffed>>10)
	case !isText(before) || !isText(after):
		return "it is not text"
	}
	return ""
}

func isText(b []byte) bool { return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 }

func prefixed(hash *string) *string {
	if hash == nil {
		return nil
	}
	text := "sha256:" + *hash
	return &text
}

// ExplainRequest names a file.
type ExplainRequest struct {
	Path    string `json:"path" required:"true" positional:"true" maxBytes:"4096" doc:"A file that agents read, such as AGENTS.md: absolute, from the project, or from the home with ~/"`
	Line    int    `json:"line,omitempty" minimum:"1" doc:"One of its lines"`
	Repo    string `json:"repo,omitempty" doc:"Path to the agentpack config repo (default: $AGENTPACK_HOME/repo)."`
	Profile string `json:"profile,omitempty" default:"default" doc:"Profile of the configuration"`
	Machine string `json:"machine,omitempty" doc:"Machine id for machine overlays. Omit to auto-detect."`
}

// ExplainData says which modules and overlays give a file.
type ExplainData struct {
	Files []ExplainedFile `json:"files"`
}

func (s toolDeps) explain() operation.Operation {
	o := beside(NameExplain, "Say which module and which overlay gives a file, or one of its lines",
		"Say which module gives a file that agents read, from which file of which repository and commit, and which "+
			"overlays change it. With a line: which\n"+
			"of these gives the line. It is about the files that a deployment would put in place now.")
	way := operation.CallSpec[ExplainRequest]{Timeout: readTimeout, Check: func(in ExplainRequest) *operation.Fault {
		return checkArgumentLengths(map[string]string{"repo": in.Repo, "profile": in.Profile, "machine": in.Machine})
	}}
	return operation.Define(s.kernel, ToolsetName, o, way,
		func(ctx context.Context, call operation.Call, in ExplainRequest) (out Envelope[ExplainData], err error) {
			service := s.service()
			if in.Repo, err = service.fromCaller(call, in.Repo); err != nil {
				return out, faultOf(err)
			}
			ctx, fetched := noting(ctx)
			defer func() { fetched.noteTo(call, operation.Note{}) }()
			files, err := service.Explain(ctx, Request{Repo: in.Repo, Profile: in.Profile, Machine: in.Machine}, in.Path,
				in.Line)
			if err != nil {
				return out, faultOf(err)
			}
			return enveloped(NameExplain, service.version, ExplainData{files}, nil), nil
		})
}

// DoctorRequest says what to look at.
type DoctorRequest struct {
	Repo   string `json:"repo,omitempty" doc:"Path to the agentpack config repo (default: $AGENTPACK_HOME/repo)."`
	Target string `json:"target,omitempty" default:"all" enum:"all,codex,claude_code,cursor,vscode" doc:"Agent program to look at"`
}

// GitignoreFix is a line that doctor has added to a .gitignore. This doctor only looks, so there is never one.
type GitignoreFix struct {
	Path  string   `json:"path"`
	Added []string `json:"added"`
}

// DoctorData lists the obstacles to a deployment.
type DoctorData struct {
	MachineID      string               `json:"machine_id"`
	Roots          []fileset.RootHealth `json:"roots"`
	GitignoreFixes []GitignoreFix       `json:"gitignore_fixes"`
	NextActions    []string             `json:"next_actions,omitempty"`
}

func (s toolDeps) doctor() operation.Operation {
	o := readOperation(ToolDoctor, "See what would stop a deployment", "Say what would stop a deployment",
		"Look at the folders that are deployed to: whether they are there and can be written, and whether git would commit "+
			"the manifests in them. Changes nothing.")
	way := operation.CallSpec[DoctorRequest]{Timeout: readTimeout,
		Check: func(in DoctorRequest) *operation.Fault {
			return checkArgumentLengths(map[string]string{"repo": in.Repo})
		}}
	return operation.Define(s.kernel, ToolsetName, o, way,
		func(ctx context.Context, call operation.Call, in DoctorRequest) (out Envelope[DoctorData], err error) {
			service := s.service()
			if in.Repo, err = service.fromCaller(call, in.Repo); err != nil {
				return out, faultOf(err)
			}
			ctx, fetched := noting(ctx)
			defer func() { fetched.noteTo(call, operation.Note{}) }()
			data, warnings, err := service.Doctor(ctx, Request{Repo: in.Repo, Target: in.Target})
			if err != nil {
				return out, faultOf(err)
			}
			return enveloped(ToolDoctor, service.version, data, warnings), nil
		})
}

// Doctor looks at the folders that are deployed to.
func (s *Service) Doctor(ctx context.Context, r Request) (data DoctorData, warnings []string, err error) {
	d, err := s.desire(ctx, r, s.engine.Hashes)
	if err != nil {
		return data, nil, err
	}
	data = DoctorData{MachineID: s.setup.machineID(r.Machine), Roots: []fileset.RootHealth{},
		GitignoreFixes: []GitignoreFix{}}
	for _, root := range d.Roots {
		h := d.Health(root)
		data.Roots = append(data.Roots, h)
		if h.Suggestion != nil && !h.Exists {
			data.NextActions = append(data.NextActions, "mkdir -p "+shellQuote(root.Dir))
		}
		manifest := fileset.ManifestPath(root.Dir, root.Target)
		if ignored, knows := s.setup.Git.ignores(ctx, manifest); knows && !ignored {
			warnings = append(warnings,
				fmt.Sprintf(
					"%s would be committed with the repository that it lies in; add .agentpack.manifest*.json to its .gitignore",
					manifest))
		}
	}
	return data, warnings, nil
}

// shellQuote returns a path as a shell reads it as one word.
func shellQuote(name string) string {
	if plain := strings.NewReplacer("/", "", ".", "").Replace(name); safe(plain) == plain {
		return name
	}
	out := "'"
	for _, r := range name {
		if r == '\'' {
			out += `'\''`
			continue
		}
		out += string(r)
	}
	return out + "'"
}
