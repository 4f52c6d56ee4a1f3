package definitions

import (
	"context"
	"path"

	"github.com/claudeops/claudeops/internal/operation"
)

// schemaVersion is the version of the schemas with which definitions are compared.
const schemaVersion = "1.0"

// ValidateRequest names a definition by its file or by its name.
type ValidateRequest struct {
	Path   string `json:"path,omitempty" maxLength:"4096" doc:"File in the project or in the user's registry; give this or name"`
	Name   string `json:"name,omitempty" positional:"true" maxLength:"256" doc:"Name, with @range if wanted; give this or path. What ends with .md, .yaml or .yml is a path"`
	Strict bool   `json:"strict,omitempty" default:"false" doc:"Also resolve references and warn of unknown fields"`
}

func (in ValidateRequest) check() *operation.Fault {
	switch {
	case in.Path == "" && in.Name == "":
		return operation.Invalid("path", "`path` or `name` is required")
	case in.Path != "" && in.Name != "":
		return operation.Invalid("path", "`path` and `name` exclude each other: give one of them")
	}
	return nil
}

// Flaw is a problem that makes a definition invalid.
type Flaw struct {
	Field      string   `json:"field"`
	Message    string   `json:"message"`
	Severity   Severity `json:"severity" enum:"error,warning"`
	Line       int      `json:"line,omitempty"`
	Column     int      `json:"column,omitempty"`
	Suggestion string   `json:"suggestion,omitempty"`
}

// Warning is a problem that a definition is valid with.
type Warning struct {
	Field      string `json:"field"`
	Message    string `json:"message"`
	Line       int    `json:"line,omitempty"`
	Column     int    `json:"column,omitempty"`
	Suggestion string `json:"suggestion,omitempty"`
}

// ValidateAnswer lists the problems of a definition.
type ValidateAnswer struct {
	Valid         bool      `json:"valid"`
	Path          string    `json:"path"`
	Errors        []Flaw    `json:"errors"`
	Warnings      []Warning `json:"warnings"`
	SchemaVersion string    `json:"schema_version"`
	Notes         []string  `json:"notes,omitempty" doc:"What was left out"`
}

const validateDescription = " against its schema, given by path or by name. Every problem is listed with its field, " +
	"line and column: errors make it invalid, warnings do " +
	"not. With strict, what it extends and other references must resolve, and unknown fields are warnings. A definition " +
	"that is invalid is an " +
	"answer with valid: false, no error of the call."

func (s set) agentValidate() operation.Operation {
	return s.validate(Agent, named("agent_validate", "agent validate", "Validate an agent",
		"Check an agent against its schema",
		"Check an agent (YAML or Markdown)"+validateDescription))
}

func (s set) toolValidate() operation.Operation {
	return s.validate(Tool, named("tool_validate", "tool validate", "Validate a tool", "Check a tool against its schema",
		"Check the definition of a tool (YAML or Markdown)"+validateDescription))
}

func (s set) validate(kind Kind, o operation.Operation) operation.Operation {
	return reading(s, o, ValidateRequest.check, func(ctx context.Context, v *view, in ValidateRequest) (ValidateAnswer,
		error) {
		if in.Path == "" && knownExtension(path.Ext(in.Name)) {
			in.Path = in.Name
		}
		if in.Path != "" {
			return validated(v.files.validatePath(ctx, kind, in.Path, in.Strict))
		}
		return validated(v.catalog.validateNamed(ctx, kind, ParseReference(in.Name), in.Strict))
	})
}

// Incomplete implements operation.Partial: the command ends with an error where the definition is not valid.
func (v ValidateAnswer) Incomplete() bool { return !v.Valid }

func validated(v Validation, err error) (ValidateAnswer, error) {
	out := ValidateAnswer{Valid: v.valid(), Path: v.Path, Errors: []Flaw{}, Warnings: []Warning{},
		SchemaVersion: schemaVersion}
	for _, p := range v.Problems {
		if p.Severity == SeverityError {
			out.Errors = append(out.Errors, Flaw{p.Field, p.Message, p.Severity, p.Line, p.Column, p.Suggestion})
		} else {
			out.Warnings = append(out.Warnings, Warning{p.Field, p.Message, p.Line, p.Column, p.Suggestion})
		}
	}
	return out, err
}
