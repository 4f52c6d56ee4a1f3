package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// machine stands for the forge's runner: a clone in which the steps run, and what one step leaves for those after it.
type machine struct {
	source, clone, temp string
	added, variables    string // the files in which steps leave folders of programs, and variables
	tag                 string
}

// newMachine makes the folder of a run; what was in its clone is removed.
func newMachine(folder string) (*machine, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	source, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	m := &machine{
		source: source, clone: filepath.Join(folder, "clone"), temp: filepath.Join(folder, "temp"),
		added: filepath.Join(folder, "path"), variables: filepath.Join(folder, "env"),
	}
	err = errors.Join(os.RemoveAll(m.clone), os.MkdirAll(m.clone, 0o755), os.MkdirAll(m.temp, 0o755),
		os.WriteFile(m.added, nil, 0o600), os.WriteFile(m.variables, nil, 0o600))
	if err != nil {
		return nil, err
	}
	if _, noSudo := exec.LookPath("sudo"); noSudo != nil && os.Getuid() == 0 { // root needs none
		bin := filepath.Join(folder, "bin")
		err = errors.Join(os.MkdirAll(bin, 0o755), os.WriteFile(m.added, []byte(bin+"\n"), 0o600),
			os.WriteFile(filepath.Join(bin, "sudo"), []byte("#!/bin/sh\nexec \"$@\"\n"), 0o755))
	}
	return m, err
}

// checkout is the command that clones.
func (m *machine) checkout() string {
	return fmt.Sprintf(`git clone --quiet --no-tags "file://$(git -C '%s' rev-parse --path-format=absolute `+
		`--git-common-dir)" . && git checkout --quiet "$(git -C '%s' rev-parse HEAD)" && `+
		`git -c user.name=trial -c user.email=trial@localhost tag --annotate --message trial '%s'`,
		m.source, m.source, m.tag)
}

// run runs a command as the runner does: by bash, which ends at the first failure.
func (m *machine) run(ctx context.Context, command string) error {
	added, err := os.ReadFile(m.added)
	if err != nil {
		return err
	}
	variables, err := os.ReadFile(m.variables)
	if err != nil {
		return err
	}
	for _, folder := range strings.Fields(string(added)) {
		command = fmt.Sprintf("PATH='%s':$PATH\n%s", folder, command)
	}
	cmd := exec.CommandContext(ctx, "bash", "-e", "-o", "pipefail", "-c", command)
	cmd.Dir = m.clone
	cmd.Env = append(cmd.Environ(), strings.Fields(string(variables))...)
	cmd.Env = append(cmd.Env, "RUNNER_TEMP="+m.temp, "GITHUB_PATH="+m.added, "GITHUB_ENV="+m.variables,
		"GITHUB_ACTOR=trial", "HOMEBREW_TAP_TOKEN=none")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}
