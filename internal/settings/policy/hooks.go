package policy

import (
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Hook is a template of sessions that another program starts, such as Alertmanager, or a person at a forge.
type Hook struct {
	Name        string
	TokenSHA256 string     // of the token that its callers show, in hexadecimal; "": no program starts it
	Forge       []ForgeAct // what people do at a forge to start it; empty: nothing does
	Tier        gitprovider.Tier
	Note        string        // the operator's words to the agent
	Window      time.Duration // one session for the same alert within it
	PerHour     int           // sessions
}

// ForgeAct is what a person does at a forge to start a session.
type ForgeAct string

// The acts.
const (
	ForgeLabel   ForgeAct = "label"   // gives an issue the label gitprovider.LabelOurs
	ForgeComment ForgeAct = "comment" // comments on an issue or a pull request with gitprovider.StartCommand
)

// hookSection is the YAML form of a hook.
type hookSection struct {
	TokenSHA256 string     `yaml:"token_sha256"`
	Forge       []ForgeAct `yaml:"forge"`
	Tier        *int       `yaml:"tier"`
	Note        string     `yaml:"note"`
	Window      string     `yaml:"window"`
	PerHour     *int       `yaml:"per_hour"`
}

// Defaults and bounds of hooks.
const (
	DefaultHookWindow  = time.Hour
	DefaultHookPerHour = 4
	maxHookWindow      = 7 * 24 * time.Hour
	maxHookPerHour     = 60
	maxHookNote        = 8 << 10
	maxHooks           = 20
)

// HookNamed returns the hook of a name.
func (a Agents) HookNamed(name string) (Hook, bool) {
	at := slices.IndexFunc(a.Hooks, func(h Hook) bool { return h.Name == name })
	if at < 0 {
		return Hook{}, false
	}
	return a.Hooks[at], true
}

// HookOf returns the hook that an act at a forge starts; there is at most one.
func (a Agents) HookOf(act ForgeAct) (Hook, bool) {
	at := slices.IndexFunc(a.Hooks, func(h Hook) bool { return slices.Contains(h.Forge, act) })
	if at < 0 {
		return Hook{}, false
	}
	return a.Hooks[at], true
}

// hookWords says what starts each hook and what it may do, without its token.
func (a Agents) hookWords() []string {
	out := []string{}
	for _, h := range a.Hooks {
		about := "alert"
		if len(h.Forge) > 0 {
			about = "issue"
		}
		out = append(out, fmt.Sprintf("%s: sessions of tier %s, at most %d in an hour, and one for the same %s within %s%s",
			h.Name, h.Tier, h.PerHour, about, ageText(h.Window), h.forgeWords()))
	}
	return out
}

// forgeWords says what people do at a forge to start it.
func (h Hook) forgeWords() string {
	var acts []string
	if slices.Contains(h.Forge, ForgeLabel) {
		acts = append(acts, "the label "+gitprovider.LabelOurs+" on an issue")
	}
	if slices.Contains(h.Forge, ForgeComment) {
		acts = append(acts, "the comment "+gitprovider.StartCommand)
	}
	if len(acts) == 0 {
		return ""
	}
	return "; at a forge, who may write to the repository starts it by " + strings.Join(acts, " or ")
}

func (f policyFile) hooks(p *Policy) error {
	if len(f.Hooks) > maxHooks {
		return fmt.Errorf("hooks: there are %d; at most %d may be", len(f.Hooks), maxHooks)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Hooks)) {
		h, err := f.Hooks[name].hook(name)
		if err != nil {
			return fmt.Errorf("hooks.%s: %w", name, err)
		}
		for _, act := range h.Forge {
			if other, found := p.Agents.HookOf(act); found {
				return fmt.Errorf("hooks.%s: forge: %s starts the hook %s already; it may start one", name, act, other.Name)
			}
		}
		if len(h.Forge) > 0 && len(f.Repositories) == 0 {
			return fmt.Errorf("hooks.%s: forge: name in repositories at whose issues people may start sessions", name)
		}
		p.Agents.Hooks = append(p.Agents.Hooks, h)
	}
	return nil
}

func (s hookSection) checkForge() error {
	for i, act := range s.Forge {
		if act != ForgeLabel && act != ForgeComment {
			return fmt.Errorf("forge: %.40q is not an act; label and comment are", act)
		}
		if slices.Contains(s.Forge[:i], act) {
			return fmt.Errorf("forge: %s is there twice", act)
		}
	}
	return nil
}

func (s hookSection) hook(name string) (Hook, error) {
	h := Hook{Name: name, TokenSHA256: s.TokenSHA256, Forge: s.Forge, Tier: gitprovider.TierObserve, Note: s.Note,
		Window: DefaultHookWindow, PerHour: DefaultHookPerHour}
	if !regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`).MatchString(name) {
		return h, fmt.Errorf("a name has at most 40 of a-z, 0-9 and -")
	}
	if err := s.checkForge(); err != nil {
		return h, err
	}
	byToken := s.TokenSHA256 != "" || len(s.Forge) == 0
	if sum, err := hex.DecodeString(s.TokenSHA256); byToken && (err != nil || len(sum) != 32) {
		return h, fmt.Errorf("token_sha256 must be the SHA-256 of the hook's token: printf %%s \"$TOKEN\" | sha256sum")
	}
	if len(s.Note) > maxHookNote {
		return h, fmt.Errorf("note has more than %d bytes", maxHookNote)
	}
	if s.Tier != nil {
		if h.Tier = gitprovider.Tier(*s.Tier); h.Tier < gitprovider.TierObserve || h.Tier > gitprovider.TierRemediate {
			return h, fmt.Errorf("tier is %d; 1, 2 and 3 are tiers", *s.Tier)
		}
	}
	if s.Window != "" {
		window, err := ParseAge(s.Window)
		if err != nil || window < time.Minute || window > maxHookWindow {
			return h, fmt.Errorf("window is %q; give a time from 1m to 7d, such as 1h", s.Window)
		}
		h.Window = window
	}
	if s.PerHour != nil {
		if h.PerHour = *s.PerHour; h.PerHour < 1 || h.PerHour > maxHookPerHour {
			return h, fmt.Errorf("per_hour is %d; it may be 1 to %d", h.PerHour, maxHookPerHour)
		}
	}
	return h, nil
}
