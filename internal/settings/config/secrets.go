package config

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/identity"
)

// SecretsEvery is the maximum age of a secret when a decision is made with it.
const SecretsEvery = time.Second

// Secrets holds the secrets that may change while a process runs, since they come from a file: from one that NAME_FILE
// names, or from the environment file. Each decision asks for them. All parts of a process share one. It is safe for
// concurrent use.
//
// A secret by which others are admitted is gone while its file is missing, empty or cannot be read. A secret that we
// show to others keeps its last value. Settings that hold until the process ends are compared with their files; see
// Problems.
type Secrets struct {
	SecretsOptions

	mu       sync.Mutex
	readAt   time.Time
	whole    bool     // every source could be read
	names    []string // of the variables, in the order of the reference
	is       map[string]oneSecret
	began    map[string]string // values at the start
	last     map[string]string // values that were not empty
	reported []SecretProblem
}

// SecretsOptions configure Secrets. All are required but Changed.
type SecretsOptions struct {
	Sources func() (Sources, error) // with files as they are now
	Drivers []forge.Driver          // of the forges
	Learn   func(secret string)     // keeps a secret out of texts from now on
	Changed func(is []SecretProblem)
	Now     func() time.Time
}

// oneSecret is a secret as its source gives it.
type oneSecret struct {
	value   string
	file    bool // NAME_FILE names its file
	problem string
}

// SecretProblem is a secret whose source does not give what it should.
type SecretProblem struct {
	Name   string // of the variable
	Detail string // what is wrong, and what holds meanwhile
	// Restart says that the source has another value, which a process takes only when it starts.
	Restart bool
}

// NewSecrets reads the secrets once.
func NewSecrets(o SecretsOptions) *Secrets {
	s := &Secrets{SecretsOptions: o, last: map[string]string{}}
	s.refreshSecrets(true)
	s.began = map[string]string{}
	for name, one := range s.is {
		s.began[name] = one.value
	}
	s.reported = s.problems()
	return s
}

// refreshSecrets looks at every secret, unless that was done less than SecretsEvery ago.
func (s *Secrets) refreshSecrets(first bool) {
	now := s.Now()
	if since := now.Sub(s.readAt); !first && since >= 0 && since < SecretsEvery {
		return
	}
	s.readAt = now
	sources, err := s.Sources() // the operator's rules say what is wrong with the environment file
	s.whole, s.names, s.is = err == nil, nil, map[string]oneSecret{}
	for _, v := range settable(sources, s.Drivers) {
		if !v.Secret || v.Name == personToken {
			continue
		}
		s.names = append(s.names, v.Name)
		one := readSecret(sources, v.Name)
		s.is[v.Name] = one
		if one.value != "" && one.value != s.last[v.Name] {
			s.last[v.Name] = one.value
			if !first {
				s.learn(one.value)
			}
		}
	}
	if first {
		return
	}
	if is := s.problems(); !slices.Equal(is, s.reported) {
		s.reported = is
		if s.Changed != nil {
			s.Changed(is)
		}
	}
}

// learn keeps a new secret out of texts, as Load does with those of the start.
func (s *Secrets) learn(value string) {
	var e env
	if forge.IsKey(value) {
		e.rememberWhole(forge.Redacted(value))
	} else {
		e.remember(value)
	}
	for _, secret := range e.secrets {
		s.Learn(secret)
	}
}

func readSecret(sources Sources, name string) (one oneSecret) {
	e := env{lookup: sources.Lookup, sources: sources}
	if one.value = e.get(name); one.value != "" {
		return one
	}
	file := e.get(name + "_FILE")
	if one.file = file != ""; !one.file {
		return one
	}
	var err error
	one.value, err = files.ReadSecret(file)
	switch {
	case err != nil:
		one.value, one.problem = "", fmt.Sprintf("%s_FILE names a file that cannot be read or is larger than %d bytes", name,
			files.MaxSecretSize)
	case one.value == "":
		one.problem = name + "_FILE names an empty file"
	}
	return one
}

// value returns a secret as it is now; "" if its file gives none.
func (s *Secrets) value(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refreshSecrets(false)
	return s.is[name].value
}

// APITokens returns the tokens of CLAUDEOPS_API_TOKENS as they are now.
func (s *Secrets) APITokens() []string { return splitList(s.value(apiTokens)) }

// Hook returns the secret of a forge's webhooks as it is now; "" if there is none that is long enough.
func (s *Secrets) Hook(d forge.Driver) string {
	value := s.value(d.HookVariable().Name)
	if len(value) < minHookSecret {
		return ""
	}
	return value
}

// Client returns the secret by which a provider of identities knows us. It is the last one while there is none.
func (s *Secrets) Client(provider string) string {
	name := signInVariable(provider, "CLIENT_SECRET")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refreshSecrets(false)
	return s.last[name]
}

// Problems says which sources do not give what they should, in the order of the reference.
func (s *Secrets) Problems() []SecretProblem {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refreshSecrets(false)
	return s.problems()
}

func (s *Secrets) problems() (out []SecretProblem) {
	for _, name := range s.names {
		one := s.is[name]
		began, known := s.began[name]
		changed := s.whole && known && one.value != began
		if one.problem == "" && !changed {
			continue
		}
		switch meanwhile, live := s.whenGone(name, one); {
		case one.problem != "":
			out = append(out, SecretProblem{Name: name, Detail: one.problem + ": " + meanwhile})
		case !live:
			out = append(out, SecretProblem{Name: name, Restart: true,
				Detail: name + " has changed since this process started, which goes on with the value of then"})
		}
	}
	return out
}

// whenGone says what holds while a secret cannot be read, and whether a running process takes another one.
func (s *Secrets) whenGone(name string, one oneSecret) (meanwhile string, live bool) {
	for _, d := range s.Drivers {
		switch {
		case name == d.HookVariable().Name:
			return "webhooks of this forge are refused", true
		case slices.ContainsFunc(d.Variables, func(v Variable) bool { return v.Name == name }):
			return "the last one that was read holds", one.file // package secretfile reads it again
		}
	}
	switch {
	case name == apiTokens:
		return "none of its tokens lets anybody in", true
	case strings.HasPrefix(name, signInPrefix):
		return "the last one that was read holds", true
	}
	return "what this process started with holds", false
}

// Names of variables that are made or looked for.
const (
	apiTokens    = "CLAUDEOPS_API_TOKENS"
	personToken  = "CLAUDEOPS_TOKEN" // which the command line reads, and no server
	signInPrefix = "CLAUDEOPS_SIGN_IN_"
)

// signInVariable returns the name of a variable of a provider of identities.
func signInVariable(provider, what string) string {
	return signInPrefix + identity.VariablePart(provider) + "_" + what
}
