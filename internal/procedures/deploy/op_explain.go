package deploy

import (
	"context"

	"github.com/claudeops/claudeops/internal/operation"
)

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

func (s set) explain() operation.Operation {
	o := beside(NameExplain, "Say which module and which overlay gives a file, or one of its lines",
		"Say which module gives a file that agents read, from which file of which repository and commit, and which "+
			"overlays change it. With a line: which\n"+
			"of these gives the line. It is about the files that a deployment would put in place now.")
	way := operation.Way[ExplainRequest]{Timeout: readTimeout, Check: func(in ExplainRequest) *operation.Fault {
		return bounded(map[string]string{"repo": in.Repo, "profile": in.Profile, "machine": in.Machine})
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
