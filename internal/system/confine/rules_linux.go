package confine

import (
	"os"

	"github.com/landlock-lsm/go-landlock/landlock"
)

// permission is the permission that a rule gives.
type permission struct {
	change  bool // to write, make, move and remove, beside reading and executing
	devices bool // to control devices
	sockets bool // to connect to sockets of processes outside
}

// pathRules returns rules that permit something with paths, which have no links, as far as nothing in them is hidden.
func pathRules(abi int, paths, hidden []string, p permission) (rules []landlock.Rule) {
	var folders, files []string
	for _, path := range paths {
		for _, part := range carve(path, hidden) {
			info, err := os.Lstat(part)
			switch {
			case err != nil: // it has gone
			case info.IsDir():
				folders = append(folders, part)
			default:
				files = append(files, part)
			}
		}
	}
	ofFolders, ofFiles := landlock.RODirs(folders...), landlock.ROFiles(files...)
	if p.change {
		ofFolders, ofFiles = landlock.RWDirs(folders...), landlock.RWFiles(files...)
		if abi >= abiMove {
			ofFolders = ofFolders.WithRefer()
		}
	}
	for _, rule := range []landlock.FSRule{ofFolders, ofFiles} {
		rule = rule.IgnoreIfMissing()
		if p.devices && abi >= abiDevices {
			rule = rule.WithIoctlDev()
		}
		if p.sockets && abi >= abiSockets {
			rule = rule.WithResolveUnix()
		}
		rules = append(rules, rule)
	}
	return rules
}
