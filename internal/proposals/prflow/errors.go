package prflow

import (
	"errors"
	"log/slog"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// redactedLog is a log in which errors have their causes, and no value of a token of ours.
type redactedLog struct {
	*slog.Logger
	secrets Secrets
}

func (l redactedLog) warn(message string, err error, attributes ...any) {
	l.Warn(message, append(attributes, "error", l.text(err))...)
}

func (l redactedLog) error(message string, err error, attributes ...any) {
	l.Error(message, append(attributes, "error", l.text(err))...)
}

// text is an error with its causes.
func (l redactedLog) text(err error) string {
	text := err.Error()
	for e := (*fault.Error)(nil); errors.As(err, &e) && e.Cause != nil; err = e.Cause {
		text += ": " + e.Cause.Error()
	}
	return l.secrets.Redact(text)
}

// shown is an error as an answer may have it.
func (l redactedLog) shown(err error) string { return l.secrets.Redact(fault.From(err).Message) }
