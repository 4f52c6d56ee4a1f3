package app

import (
	"regexp"
	"runtime/debug"
)

// Release is the version of this source tree; CHANGELOG.md has the same.
const Release = "0.1.0"

// Version returns the tag that the binary was built from (or that `go install` was asked for), else the release with
// the commit if Go stamped one.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Release
	}
	return VersionOf(info)
}

// VersionOf returns the version that a build says.
func VersionOf(info *debug.BuildInfo) string {
	if tag := regexp.MustCompile(`^v(\d+\.\d+\.\d+(-[a-z]+\.?\d*)?(\+dirty)?)$`).FindStringSubmatch(
		info.Main.Version); tag != nil {
		return tag[1]
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return Release + "+" + s.Value[:min(len(s.Value), 12)]
		}
	}
	return Release
}
