package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/procedures/scripts"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/processtree"
)

// Bounds of a checker's run beside its time and its output.
const (
	checkerProcesses = 64
	checkerGrace     = 2 * time.Second
	maxCheckerError  = 120 // runes of what a checker prints on standard error
)

// newCheckers runs checkers as scripts of the toolset scripts are run: within the same boundary where the system can
// keep one, with a temporary folder of their own as the only place that they may change, and without our variables.
func newCheckers(a *App, p *Parts) prflow.RunChecker {
	confine := confineScripts(p.Cfg)
	return func(ctx context.Context, c policy.Checker, proposal []byte) ([]byte, error) {
		own, err := files.MakeTemporary("", "claudeops-checker-")
		if err != nil {
			return nil, fmt.Errorf("there is no temporary folder for it: %w", err)
		}
		defer func() { _ = own.Remove() }()
		mark := "CLAUDEOPS_CHECKER_RUN=" + NewID()
		command := processtree.Command{
			Path: c.Command[0], Args: append([]string{filepath.Base(c.Command[0])}, c.Command[1:]...), Dir: own.Path,
			Stdin: bytes.NewReader(proposal), Env: append(checkerEnv(a, p.Cfg, c), mark, "TMPDIR="+own.Path),
		}
		options := processtree.Options{Grace: checkerGrace, Mark: mark, MostProcesses: checkerProcesses}
		within, bounded, err := confine(command, options, []string{own.Path})
		if err != nil && !errors.Is(err, scripts.ErrNoBoundary) {
			return nil, fmt.Errorf("its boundary cannot be kept: %w", err)
		}
		ran, err := processtree.Run(ctx, processtree.Spec{Command: within, Options: bounded, Time: c.Timeout,
			Output: prflow.MaxCheckerOutput + 1})
		if err != nil {
			return nil, fmt.Errorf("it could not be started: %w", err)
		}
		return ran.Stdout.Text, problemOf(ran, c, p.Scanner.Redact)
	}
}

// problemOf says why what a checker printed is not an answer; nil if it is.
func problemOf(ran processtree.Result, c policy.Checker, redact func(string) string) error {
	switch {
	case ran.TimedOut:
		return fmt.Errorf("it took longer than %s", c.Timeout)
	case ran.TooMany:
		return fmt.Errorf("it had more than %d processes", checkerProcesses)
	case ran.Stdout.Size > prflow.MaxCheckerOutput:
		return fmt.Errorf("it printed more than %d bytes", prflow.MaxCheckerOutput)
	case ran.Exit.Code != 0:
		said := textscan.Clean(redact(strings.TrimSpace(string(ran.Stderr.Text))), maxCheckerError)
		return fmt.Errorf("it ended with exit code %d: %s", ran.Exit.Code, said)
	}
	return nil
}

// checkerEnv returns the variables that a checker sees: the basics, and those that the policy names for it.
func checkerEnv(a *App, cfg config.Config, c policy.Checker) (env []string) {
	for _, name := range append([]string{"PATH", "HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "USER", "LANG",
		"LC_ALL", "TZ", "SYSTEMROOT"}, c.Env...) {
		if v, ok := config.ScriptVariable(a.Options().Lookup, cfg, name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}
