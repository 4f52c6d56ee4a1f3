package confine

import (
	"errors"
	"fmt"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// configOf returns the access rights that a version of Landlock handles.
func configOf(abi int) (landlock.Config, error) {
	all := []landlock.Config{
		landlock.V1, landlock.V2, landlock.V3, landlock.V4, landlock.V5, landlock.V6, landlock.V7, landlock.V8, landlock.V9,
		landlock.V10, landlock.V11,
	}
	if abi < 1 || abi > len(all) {
		return landlock.Config{}, fmt.Errorf("version %d of Landlock is not known", abi)
	}
	return all[abi-1], nil
}

// restrict puts the process under the rules of Landlock, for ever. It fails where the kernel has not all of what the
// boundary's ABI stands for.
func (e *entry) restrict() error {
	abi := e.Boundary.ABI
	if abi == 0 {
		return nil
	}
	config, err := configOf(abi)
	if err != nil {
		return err
	}
	rules := e.pathRules(abi)
	if e.Ports == nil {
		config.HandledAccessNet = 0
	} else if e.Boundary.LimitsPorts() {
		rules = append(rules, e.portRules(abi)...)
	} else {
		return errors.New("TCP cannot be limited with this version of Landlock")
	}
	return config.Restrict(rules...)
}

// pathRules permit what the profile names, or with User all that is not hidden.
func (e *entry) pathRules(abi int) []landlock.Rule {
	hidden := resolvedAsFar(e.Hidden)
	if e.Account != nil {
		all := pathRules(abi, []string{"/"}, hidden, permission{change: true, devices: true, sockets: true})
		return append(all, landlock.PathAccess(ll.AccessFSReadDir, "/")) // the names in folders are left to their modes
	}
	rules := pathRules(abi, resolved(e.Read), hidden, permission{})
	rules = append(rules, pathRules(abi, resolved(e.Write), hidden, permission{change: true})...)
	rules = append(rules, pathRules(abi, resolved(e.Devices), hidden, permission{change: true, devices: true})...)
	return append(rules, pathRules(abi, resolved(e.Sockets), hidden, permission{change: true, sockets: true})...)
}

// portRules permit TCP to the ports, and the questions that find the addresses of names.
func (e *entry) portRules(abi int) (rules []landlock.Rule) {
	for _, port := range e.Ports {
		rules = append(rules, landlock.ConnectTCP(port))
	}
	if e.NoUDP {
		return rules
	}
	if abi >= abiUDP {
		rules = append(rules, landlock.ConnectSendUDP(namePort), landlock.BindUDP(0))
	}
	return append(rules, landlock.ConnectTCP(namePort))
}
