// Command workflow runs the steps of a release's workflow on this machine, as far as it can, and says which it could
// not run, and why. Usage: workflow FILE FOLDER, such as .github/workflows/release.yml and a folder for what is made.
// It publishes and signs nothing. The last commit is what is released, with the tag that CHANGELOG.md names.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"time"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: workflow FILE FOLDER")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := try(ctx, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func try(ctx context.Context, file, folder string) error {
	jobs, err := readWorkflow(file)
	if err != nil {
		return err
	}
	m, err := newMachine(folder)
	if err != nil {
		return err
	}
	changes, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return err
	}
	newest := regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+)`).FindSubmatch(changes)
	if newest == nil {
		return fmt.Errorf("CHANGELOG.md begins with no version")
	}
	m.tag = "v" + string(newest[1])
	for name, job := range jobs {
		fmt.Printf("job %s of %s\n", name, filepath.Base(file))
		for _, s := range job.Steps {
			if err := m.take(ctx, s); err != nil {
				return fmt.Errorf("%s: %w", s.title(), err)
			}
		}
	}
	return nil
}

// take runs a step, or says why not.
func (m *machine) take(ctx context.Context, s step) error {
	command, partly, why := m.planOf(ctx, s)
	if why != "" {
		fmt.Printf("  not run  %s: %s\n", s.title(), why)
		return nil
	}
	start := time.Now()
	if err := m.run(ctx, command); err != nil {
		return err
	}
	fmt.Printf("  done     %s (%s)", s.title(), time.Since(start).Round(time.Second))
	if partly != "" {
		fmt.Printf("; in part: %s", partly)
	}
	fmt.Println()
	return nil
}
