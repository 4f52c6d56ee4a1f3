package content

import (
	"regexp"
	"strings"
)

// harmless says whether what a rule has found is known not to be a credential: a name, a version, a placeholder of
// documentation, an example that its provider publishes, or the letters of an alphabet in their order.
func harmless(rule, value string) bool {
	value = strings.Trim(value, "\"'`")
	switch {
	case rule == "generic-api-key":
		return identifier(value) || alphabet(value) || published(value)
	case rule == "hashicorp-tf-password":
		return identifier(value) || namesItself(value)
	case rule == "nuget-config-password":
		return namesItself(value)
	case strings.HasPrefix(rule, "curl-auth-"):
		return placeholders(value)
	}
	return false
}

// heuristic says whether a rule only guesses: anything unlike prose that is assigned to a telling name.
func heuristic(rule string) bool {
	return rule == "generic-api-key" || rule == "hashicorp-tf-password"
}

// published says whether a value is an example key of the documentation of Amazon Web Services.
func published(value string) bool {
	return value == "AKIA"+"IOSFODNN7EXAMPLE" || value == "wJalrXUtnFEMI/K7MDENG/"+"bPxRfiCYEXAMPLEKEY"
}

// alphabet says whether nearly every character of a value is the one after the character before it.
func alphabet(value string) bool {
	steps := 0
	for i := 1; i < len(value); i++ {
		if value[i] == value[i-1]+1 {
			steps++
		}
	}
	const maxBreaks = 5 // between digits, capitals, small letters and what follows them
	return len(value) >= 16 && len(value)-1-steps <= maxBreaks
}

// namesItself says whether a value is a stand-in that contains the word password, letters otherwise, and up to three digits
// at its end.
func namesItself(value string) bool {
	return regexp.MustCompile(`(?i)^[a-z]*passw(?:or)?d[a-z]{0,12}[0-9]{0,3}$`).MatchString(value) && len(value) <= 32
}

// placeholders says whether user and password of a command line are words that documentation uses in their place, or are
// read from a file when the command runs.
func placeholders(value string) bool {
	user, password, found := strings.Cut(value, ":")
	return found && placeholder(user) && placeholder(password)
}

func placeholder(value string) bool {
	fromFile := regexp.MustCompile(`^\$\(cat [./a-zA-Z_-]{1,60}\)$`)
	switch strings.ToLower(strings.Trim(value, "<>{}[]$")) {
	case "user", "username", "name", "login", "test", "password", "passwd", "pass", "secret", "token", "example", "foo", "bar", "xxx":
		return true
	}
	return fromFile.MatchString(value)
}

// identifier says whether a value reads as a name rather than as a secret: two or more words, such as
// "claude-ops-token-v2", "oauth2_client", "apps.kubernetes.io/name" or "rc0.15.0_20231217". A word is letters with up to
// three digits at its end, a number of up to four digits, a date, or anything of up to three characters.
func identifier(value string) bool {
	words := strings.FieldsFunc(value, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
	for _, word := range words {
		if len(word) > 3 && !isWord(word) {
			return false
		}
	}
	return len(words) > 1
}

// isWord says whether a word is letters with up to three digits at its end, a number of four digits, or a date in eight.
func isWord(word string) bool {
	letters := strings.TrimRight(word, "0123456789")
	digits := len(word) - len(letters)
	if letters == "" {
		return digits <= 4 || digits == 8 && (strings.HasPrefix(word, "20") || strings.HasPrefix(word, "19"))
	}
	return digits <= 3 && !strings.ContainsAny(letters, "0123456789")
}
