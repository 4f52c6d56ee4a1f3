// Command deb makes the Debian package of a release for this machine, by what .goreleaser.yaml says about packages,
// without building for all the other systems: usage, in the folder of the sources: deb PROGRAMS VERSION FILE.deb.
// PROGRAMS is the folder of the built programs; deploy/packages/deb.sh makes them and all else that the package
// holds.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // is found by its name
	"go.yaml.in/yaml/v3"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: deb PROGRAMS VERSION FILE.deb")
		os.Exit(2)
	}
	if err := pack(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "deb:", err)
		os.Exit(1)
	}
}

func pack(programs, version, out string) error {
	description, err := describe(programs, version)
	if err != nil {
		return err
	}
	config, err := nfpm.Parse(bytes.NewReader(description))
	if err != nil {
		return err
	}
	packager, err := nfpm.Get("deb")
	if err != nil {
		return err
	}
	info, err := config.Get("deb")
	if err != nil {
		return err
	}
	info = nfpm.WithDefaults(info)
	if err := nfpm.PrepareForPackager(info, "deb"); err != nil {
		return err
	}
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	return errors.Join(packager.Package(info, file), file.Close())
}

// describe turns the part of .goreleaser.yaml into the form that nfpm reads by itself, and adds the programs.
func describe(programs, version string) ([]byte, error) {
	text, err := os.ReadFile(".goreleaser.yaml")
	if err != nil {
		return nil, err
	}
	var release struct {
		Builds   []struct{ Binary string }
		Packages []map[string]any `yaml:"nfpms"`
	}
	if err := yaml.Unmarshal(text, &release); err != nil {
		return nil, err
	}
	if len(release.Packages) != 1 {
		return nil, fmt.Errorf(".goreleaser.yaml has %d packages", len(release.Packages))
	}
	p := release.Packages[0]
	p["name"], p["depends"], p["version"], p["arch"], p["platform"] = p["package_name"], p["dependencies"], version,
		runtime.GOARCH, "linux"
	contents, _ := p["contents"].([]any)
	folder, _ := p["bindir"].(string)
	for _, build := range release.Builds {
		contents = append(contents, map[string]any{"src": filepath.Join(programs, build.Binary),
			"dst": filepath.Join(folder, build.Binary), "file_info": map[string]any{"mode": 0o755}})
	}
	p["contents"] = contents
	for _, key := range []string{"package_name", "dependencies", "file_name_template", "formats", "bindir"} {
		delete(p, key)
	}
	return yaml.Marshal(p)
}
